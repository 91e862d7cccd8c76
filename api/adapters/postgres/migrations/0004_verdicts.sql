CREATE TABLE verdict (
  idx bigint PRIMARY KEY CHECK (idx > 0),
  id text NOT NULL UNIQUE CHECK (id ~ '^[0-9a-f]{32}$'),
  supersedes text UNIQUE REFERENCES verdict (id),
  category text NOT NULL,
  outcome text NOT NULL CHECK (outcome IN ('release', 'refund', 'escalate')),
  request jsonb NOT NULL,
  document text NOT NULL,
  sha256 text NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  issued_at timestamptz NOT NULL
);
--> statement-breakpoint
CREATE TRIGGER permanent BEFORE UPDATE OR DELETE ON verdict FOR EACH ROW EXECUTE FUNCTION refuse_change();
--> statement-breakpoint
CREATE TRIGGER permanent_truncate BEFORE TRUNCATE ON verdict FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
--> statement-breakpoint
ALTER TABLE verdict ENABLE ALWAYS TRIGGER permanent;
--> statement-breakpoint
ALTER TABLE verdict ENABLE ALWAYS TRIGGER permanent_truncate;
--> statement-breakpoint
GRANT SELECT, INSERT ON verdict TO trust_api;
--> statement-breakpoint
ALTER TABLE payment DROP CONSTRAINT payment_response_check;
--> statement-breakpoint
ALTER TABLE payment ADD CONSTRAINT payment_response_check CHECK (length(response) <= 2097152);
--> statement-breakpoint
CREATE INDEX certificate_standing ON certificate (wallet, product, result, issued_at DESC);
