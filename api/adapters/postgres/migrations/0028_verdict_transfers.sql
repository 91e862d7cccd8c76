-- A transfer that a verdict has decided: no other verdict decides it, but for the corrections of this one.
CREATE TABLE verdict_transfer (
  network text NOT NULL,
  tx bytea NOT NULL CHECK (length(tx) = 32),
  log_index int NOT NULL CHECK (log_index >= 0),
  -- Written in the same transaction. No foreign key: it would keep TRUNCATE from reaching the trigger that refuses it.
  verdict text NOT NULL CHECK (verdict ~ '^[0-9a-f]{32}$'),
  PRIMARY KEY (network, tx, log_index)
);
--> statement-breakpoint
CREATE TRIGGER permanent BEFORE UPDATE OR DELETE ON verdict_transfer FOR EACH ROW EXECUTE FUNCTION refuse_change();
--> statement-breakpoint
CREATE TRIGGER permanent_truncate BEFORE TRUNCATE ON verdict_transfer FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
--> statement-breakpoint
ALTER TABLE verdict_transfer ENABLE ALWAYS TRIGGER permanent;
--> statement-breakpoint
ALTER TABLE verdict_transfer ENABLE ALWAYS TRIGGER permanent_truncate;
--> statement-breakpoint
GRANT SELECT, INSERT ON verdict_transfer TO trust_api;
