-- Transfers of USDC to a wallet up to a final block, for the score: api/score/lookup/inflows.ts. `basis` is what they are
-- counted from; `claimed_by` reads on.
CREATE TABLE inflow (
  wallet bytea PRIMARY KEY CHECK (length(wallet) = 20),
  basis bytea NOT NULL,
  through bigint,
  through_hash bytea,
  through_nonce bytea,
  inflows jsonb NOT NULL,
  claimed_by text,
  claimed_until timestamptz NOT NULL,
  used_at timestamptz NOT NULL DEFAULT now()
);
--> statement-breakpoint
CREATE INDEX inflow_used ON inflow (used_at);
--> statement-breakpoint
-- What the score knows of a wallet's payees, as of a final block.
CREATE TABLE score_lookup (
  wallet bytea PRIMARY KEY CHECK (length(wallet) = 20),
  basis bytea NOT NULL,
  block bigint NOT NULL,
  found jsonb NOT NULL,
  made_at timestamptz NOT NULL
);
--> statement-breakpoint
CREATE INDEX score_lookup_made ON score_lookup (made_at);
--> statement-breakpoint
-- Final blocks with an authorized payment, by whose nonce a node shows that it has them.
CREATE TABLE lookup_mark (
  block bigint PRIMARY KEY,
  hash bytea NOT NULL CHECK (length(hash) = 32),
  nonce bytea NOT NULL CHECK (length(nonce) = 32),
  seen_at timestamptz NOT NULL DEFAULT now()
);
--> statement-breakpoint
-- Requests to nodes in an hour since 1970; the empty client is all together.
CREATE TABLE lookup_budget (
  hour int NOT NULL,
  client text NOT NULL,
  used int NOT NULL,
  PRIMARY KEY (hour, client)
);
--> statement-breakpoint
GRANT SELECT, INSERT, UPDATE, DELETE ON inflow, score_lookup, lookup_mark, lookup_budget TO trust_api;
