CREATE TABLE authorization_fact (
  slot integer PRIMARY KEY CHECK (slot BETWEEN 0 AND 131071),
  name bytea NOT NULL CHECK (length(name) = 32),
  fact jsonb NOT NULL
) WITH (fillfactor = 70);
GRANT SELECT, INSERT, UPDATE ON authorization_fact TO trust_api;

COMMENT ON TABLE authorization_fact IS
  'Fixed-size cache of facts from final blocks about payment authorizations (docs/settlement.md). An evicted fact is read from the chain again.';
COMMENT ON COLUMN authorization_fact.slot IS 'first four bytes of name, modulo 131,072';
COMMENT ON COLUMN authorization_fact.name IS 'SHA-256 of the subject of the fact';
