-- When a mark was found to be the last final block that has one. The others are of older blocks, however new they are here.
ALTER TABLE lookup_mark ADD COLUMN newest_at timestamptz;
--> statement-breakpoint
CREATE INDEX lookup_mark_newest ON lookup_mark (newest_at) WHERE newest_at IS NOT NULL;
