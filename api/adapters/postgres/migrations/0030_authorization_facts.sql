-- What final blocks have shown of authorizations, of any payer: api/adapters/postgres/authorization-facts.ts. A cache of a
-- fixed size: who asks for very many pushes facts out, and they are read from the chain again.
CREATE TABLE authorization_fact (
  slot integer PRIMARY KEY CHECK (slot BETWEEN 0 AND 131071),
  -- What the fact is about, hashed.
  name bytea NOT NULL CHECK (length(name) = 32),
  fact jsonb NOT NULL
) WITH (fillfactor = 70);
--> statement-breakpoint
GRANT SELECT, INSERT, UPDATE ON authorization_fact TO trust_api;
