ALTER TABLE relay
  ADD COLUMN purpose bytea CHECK (length(purpose) = 32),
  ADD COLUMN gas bigint,
  ADD COLUMN max_fee numeric(78),
  ADD COLUMN tended_at timestamptz NOT NULL DEFAULT now(),
  ADD COLUMN mined_hash bytea CHECK (length(mined_hash) = 32),
  ADD COLUMN block_number bigint,
  ADD COLUMN block_hash bytea CHECK (length(block_hash) = 32),
  ADD COLUMN reverted boolean,
  DROP CONSTRAINT relay_state_check,
  ADD CONSTRAINT relay_state_check CHECK (state IN ('sent', 'mined', 'final', 'lost'));
--> statement-breakpoint
CREATE UNIQUE INDEX relay_purpose ON relay (purpose, chain, sender) WHERE state <> 'lost' AND purpose IS NOT NULL;
--> statement-breakpoint
CREATE INDEX relay_taken ON relay (chain, sender, nonce);
--> statement-breakpoint
CREATE INDEX relay_unfinal ON relay (chain, sender, nonce) WHERE state = 'mined';
--> statement-breakpoint
CREATE TABLE relay_upkeep (
  chain int NOT NULL,
  sender bytea NOT NULL CHECK (length(sender) = 20),
  held_until timestamptz NOT NULL,
  PRIMARY KEY (chain, sender)
);
--> statement-breakpoint
GRANT SELECT, INSERT, UPDATE ON relay_upkeep TO trust_api;
