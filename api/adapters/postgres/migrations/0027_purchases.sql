-- Of a payer, newest first: api/adapters/postgres/purchase-store.ts. What is withheld has no transaction.
CREATE INDEX payment_purchases ON payment (payer, received_at, nonce) WHERE state IN ('settled', 'fulfilled') AND tx IS NOT NULL;
--> statement-breakpoint
-- Nonces of sign-ins that were used: when each was issued, in milliseconds since 1970, and what proves it.
CREATE TABLE sign_in (nonce bytea PRIMARY KEY CHECK (length(nonce) = 34));
--> statement-breakpoint
GRANT SELECT, INSERT, DELETE ON sign_in TO trust_api;
