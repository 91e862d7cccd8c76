-- Until then, in unix seconds of the chain, the payer may contest a release; NULL: never, or no more.
ALTER TABLE escrow_task ADD COLUMN contest_until bigint;
--> statement-breakpoint
-- What a payer may contest: the conditions that its terms bind, and what was measured of the delivery.
CREATE TABLE escrow_window (
  payment bytea PRIMARY KEY REFERENCES escrow_task,
  seconds int NOT NULL CHECK (seconds BETWEEN 1 AND 1200),
  until bigint NOT NULL,
  conditions jsonb NOT NULL,
  promised jsonb NOT NULL,
  delivered jsonb NOT NULL
);
--> statement-breakpoint
-- One for each payment. An open one is answered by the process that has its turn.
CREATE TABLE escrow_contest (
  payment bytea PRIMARY KEY REFERENCES escrow_window,
  merchant bytea NOT NULL CHECK (length(merchant) = 20),
  claim jsonb NOT NULL,
  claim_sha256 bytea NOT NULL CHECK (length(claim_sha256) = 32),
  signature bytea NOT NULL,
  made_at bigint NOT NULL,
  is_open boolean NOT NULL DEFAULT true,
  look_at timestamptz NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
--> statement-breakpoint
CREATE INDEX escrow_contest_open ON escrow_contest (look_at) WHERE is_open;
--> statement-breakpoint
CREATE TABLE escrow_contest_answer (
  payment bytea PRIMARY KEY REFERENCES escrow_contest,
  decision text NOT NULL CHECK (decision IN ('release', 'refund')),
  rule text NOT NULL,
  record bytea NOT NULL CHECK (length(record) = 32),
  document text NOT NULL,
  answered_at timestamptz NOT NULL DEFAULT now()
);
--> statement-breakpoint
CREATE TRIGGER permanent BEFORE UPDATE OR DELETE ON escrow_window FOR EACH ROW EXECUTE FUNCTION refuse_change();
--> statement-breakpoint
CREATE TRIGGER permanent_truncate BEFORE TRUNCATE ON escrow_window FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
--> statement-breakpoint
ALTER TABLE escrow_window ENABLE ALWAYS TRIGGER permanent;
--> statement-breakpoint
ALTER TABLE escrow_window ENABLE ALWAYS TRIGGER permanent_truncate;
--> statement-breakpoint
CREATE TRIGGER permanent BEFORE UPDATE OR DELETE ON escrow_contest_answer FOR EACH ROW EXECUTE FUNCTION refuse_change();
--> statement-breakpoint
CREATE TRIGGER permanent_truncate BEFORE TRUNCATE ON escrow_contest_answer FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
--> statement-breakpoint
ALTER TABLE escrow_contest_answer ENABLE ALWAYS TRIGGER permanent;
--> statement-breakpoint
ALTER TABLE escrow_contest_answer ENABLE ALWAYS TRIGGER permanent_truncate;
--> statement-breakpoint
GRANT SELECT, INSERT ON escrow_window, escrow_contest_answer TO trust_api;
--> statement-breakpoint
GRANT SELECT, INSERT, UPDATE ON escrow_contest TO trust_api;
