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
-- Who has the turn to ask a witness (api/adapters/postgres/presence.ts); null while nobody has.
ALTER TABLE log_witness ADD COLUMN owner int;
