-- The default stays: processes of the release before do not name a scheme.
ALTER TABLE payment ADD COLUMN scheme text NOT NULL DEFAULT 'exact', ADD COLUMN details jsonb;
