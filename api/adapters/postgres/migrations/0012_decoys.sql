CREATE TABLE decoy_watch (
  chain int PRIMARY KEY,
  next_block bigint NOT NULL DEFAULT 0,
  due_at timestamptz NOT NULL
);
--> statement-breakpoint
CREATE TABLE decoy_transfer (
  chain int NOT NULL,
  tx bytea NOT NULL CHECK (length(tx) = 32),
  log_index int NOT NULL,
  decoy bytea NOT NULL CHECK (length(decoy) = 20),
  other bytea NOT NULL CHECK (length(other) = 20),
  value numeric(78) NOT NULL CHECK (value > 0),
  outgoing boolean NOT NULL,
  block_number bigint NOT NULL,
  PRIMARY KEY (chain, tx, log_index)
);
--> statement-breakpoint
CREATE TABLE decoy_debt (
  chain int NOT NULL,
  decoy bytea NOT NULL CHECK (length(decoy) = 20),
  sender bytea NOT NULL CHECK (length(sender) = 20),
  session text NOT NULL,
  received numeric(78) NOT NULL,
  returned numeric(78) NOT NULL,
  owed numeric(78) GENERATED ALWAYS AS (received - returned) STORED,
  since timestamptz NOT NULL,
  due_at timestamptz NOT NULL,
  attempts int NOT NULL DEFAULT 0,
  pending_value numeric(78),
  pending_before bigint,
  submitted_at timestamptz,
  PRIMARY KEY (chain, decoy, sender),
  CHECK ((pending_value IS NULL) = (pending_before IS NULL))
);
--> statement-breakpoint
CREATE INDEX decoy_debt_owed ON decoy_debt (owed) WHERE owed > 0;
--> statement-breakpoint
CREATE INDEX decoy_debt_pending ON decoy_debt (chain) WHERE pending_value IS NOT NULL;
--> statement-breakpoint
CREATE INDEX decoy_debt_sender ON decoy_debt (sender);
--> statement-breakpoint
CREATE INDEX decoy_debt_submitted ON decoy_debt (submitted_at) WHERE submitted_at IS NOT NULL;
--> statement-breakpoint
GRANT SELECT, INSERT ON decoy_transfer TO trust_api;
--> statement-breakpoint
GRANT SELECT, INSERT, UPDATE ON decoy_watch, decoy_debt TO trust_api;
