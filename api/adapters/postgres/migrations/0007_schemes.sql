ALTER TABLE payment ADD COLUMN scheme text NOT NULL DEFAULT 'exact', ADD COLUMN details jsonb;
--> statement-breakpoint
ALTER TABLE payment ALTER COLUMN scheme DROP DEFAULT;
