-- The largest checkpoint that readers were served: none of a smaller tree is served after it, by any process.
CREATE TABLE log_served (
  generation int PRIMARY KEY,
  size bigint NOT NULL CHECK (size >= 0)
);
--> statement-breakpoint
CREATE FUNCTION refuse_smaller() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.generation <> OLD.generation OR NEW.size < OLD.size THEN
    RAISE EXCEPTION '% only grows', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
--> statement-breakpoint
CREATE TRIGGER growing BEFORE UPDATE ON log_served FOR EACH ROW EXECUTE FUNCTION refuse_smaller();
--> statement-breakpoint
GRANT SELECT, INSERT, UPDATE ON log_served TO trust_api;
--> statement-breakpoint
-- What is announced says what it is: a program that does not know it can put it into the log.
ALTER TABLE log_pending ADD COLUMN members jsonb;
--> statement-breakpoint
-- Each process announces what it knows when it starts.
DELETE FROM log_pending WHERE type IN ('policy', 'score_version', 'signing_key');
--> statement-breakpoint
-- Who has the turn to ask a witness (api/adapters/postgres/presence.ts); null while nobody has.
ALTER TABLE log_witness ADD COLUMN owner int;
--> statement-breakpoint
-- On which server of the database the log was checked last, and nothing was missing.
CREATE TABLE log_vouched (
  generation int PRIMARY KEY,
  server text NOT NULL,
  at timestamptz NOT NULL DEFAULT now()
);
--> statement-breakpoint
GRANT SELECT, INSERT, UPDATE ON log_vouched TO trust_api;
--> statement-breakpoint
GRANT UPDATE (members) ON log_pending TO trust_api;
