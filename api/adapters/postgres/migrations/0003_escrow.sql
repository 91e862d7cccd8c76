CREATE TABLE escrow_evaluation (
  payment bytea PRIMARY KEY CHECK (length(payment) = 32),
  chain int NOT NULL,
  contract bytea NOT NULL CHECK (length(contract) = 20),
  payer bytea NOT NULL CHECK (length(payer) = 20),
  merchant bytea NOT NULL CHECK (length(merchant) = 20),
  decision text NOT NULL CHECK (decision IN ('release', 'refund')),
  rule text NOT NULL,
  record bytea NOT NULL CHECK (length(record) = 32),
  document text NOT NULL,
  evaluated_at timestamptz NOT NULL DEFAULT now()
);
--> statement-breakpoint
CREATE TRIGGER permanent BEFORE UPDATE OR DELETE ON escrow_evaluation FOR EACH ROW EXECUTE FUNCTION refuse_change();
--> statement-breakpoint
CREATE TRIGGER permanent_truncate BEFORE TRUNCATE ON escrow_evaluation FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
--> statement-breakpoint
ALTER TABLE escrow_evaluation ENABLE ALWAYS TRIGGER permanent;
--> statement-breakpoint
ALTER TABLE escrow_evaluation ENABLE ALWAYS TRIGGER permanent_truncate;
--> statement-breakpoint
CREATE TABLE escrow_task (
  payment bytea PRIMARY KEY CHECK (length(payment) = 32),
  chain int NOT NULL,
  contract bytea NOT NULL CHECK (length(contract) = 20),
  info jsonb NOT NULL,
  decision text NOT NULL CHECK (decision IN ('release', 'refund')),
  record bytea CHECK (length(record) = 32),
  state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'mined', 'final')),
  tx bytea,
  look_at timestamptz NOT NULL DEFAULT now(),
  created_at timestamptz NOT NULL DEFAULT now()
);
--> statement-breakpoint
CREATE INDEX escrow_task_todo ON escrow_task (look_at) WHERE state <> 'final';
--> statement-breakpoint
GRANT SELECT, INSERT ON escrow_evaluation TO trust_api;
--> statement-breakpoint
GRANT SELECT, INSERT, UPDATE ON escrow_task TO trust_api;
