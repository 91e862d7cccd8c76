-- What transactions are for: one of them for each purpose, whoever sends it, until another transaction has taken its nonce.
CREATE TABLE relay_member (
  chain int NOT NULL,
  purpose bytea NOT NULL CHECK (length(purpose) = 32),
  relay_id bigint NOT NULL REFERENCES relay (id) ON DELETE CASCADE,
  PRIMARY KEY (chain, purpose)
);
--> statement-breakpoint
GRANT SELECT, INSERT, UPDATE ON relay_member TO trust_api;
--> statement-breakpoint
-- In the order of the transaction's calls; and the places, counted from 1, of those whose call failed.
ALTER TABLE relay ADD COLUMN purposes bytea[] NOT NULL DEFAULT '{}', ADD COLUMN failed smallint[] NOT NULL DEFAULT '{}';
--> statement-breakpoint
UPDATE relay SET purposes = ARRAY[purpose] WHERE purpose IS NOT NULL;
--> statement-breakpoint
INSERT INTO relay_member SELECT DISTINCT ON (chain, purpose) chain, purpose, id FROM relay WHERE purpose IS NOT NULL
  ORDER BY chain, purpose, state = 'lost', id DESC;
--> statement-breakpoint
-- A process of the release before would send without looking at the members: it cannot.
ALTER TABLE relay DROP COLUMN purpose;
