CREATE TABLE relay (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  chain int NOT NULL,
  sender bytea NOT NULL CHECK (length(sender) = 20),
  lane text NOT NULL CHECK (lane IN ('batch', 'alone', 'outcome', 'statement')),
  nonce bigint NOT NULL,
  purposes bytea[] NOT NULL DEFAULT '{}',
  hashes bytea[] NOT NULL,
  raw bytea NOT NULL,
  gas bigint NOT NULL,
  max_fee numeric(78) NOT NULL,
  state text NOT NULL DEFAULT 'sent' CHECK (state IN ('sent', 'mined', 'final', 'lost')),
  tended_at timestamptz NOT NULL DEFAULT now(),
  created_at timestamptz NOT NULL DEFAULT now(),
  mined_hash bytea CHECK (length(mined_hash) = 32),
  block_number bigint,
  block_hash bytea CHECK (length(block_hash) = 32),
  reverted boolean,
  failed smallint[] NOT NULL DEFAULT '{}',
  lost_wei numeric(78) NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX relay_nonce ON relay (chain, sender, nonce) WHERE state = 'sent';
CREATE INDEX relay_taken ON relay (chain, sender, nonce);
CREATE INDEX relay_unfinal ON relay (chain, sender, nonce) WHERE state = 'mined';
CREATE INDEX relay_lost ON relay (chain, sender, created_at) WHERE lost_wei > 0;
CREATE INDEX relay_hashes ON relay USING gin (hashes) WITH (fastupdate = off);
GRANT SELECT, INSERT, UPDATE, DELETE ON relay TO trust_api;

COMMENT ON TABLE relay IS 'Transactions that the service has signed and sent, each stored before it is sent.';
COMMENT ON COLUMN relay.chain IS 'EIP-155 chain id';
COMMENT ON COLUMN relay.sender IS 'the account that signed it';
COMMENT ON COLUMN relay.lane IS
  'the kind of transaction; it limits how many of that kind an account may have unmined';
COMMENT ON COLUMN relay.purposes IS 'the purposes of its calls, in their order; for a payment, the payment''s digest';
COMMENT ON COLUMN relay.hashes IS 'every hash that this transaction has had, oldest first: one more each time its fee was raised';
COMMENT ON COLUMN relay.raw IS 'the signed transaction as it was last sent';
COMMENT ON COLUMN relay.gas IS 'gas limit';
COMMENT ON COLUMN relay.max_fee IS 'maxFeePerGas in wei, as it was last signed';
COMMENT ON COLUMN relay.state IS
  '"sent": no block is known to hold it; "mined": a block holds it; "final": that block is final; "lost": a final block holds another transaction with this nonce';
COMMENT ON COLUMN relay.tended_at IS 'when the transaction was last broadcast or looked for';
COMMENT ON COLUMN relay.mined_hash IS 'which of the hashes was mined; null until one is, as are the block columns and reverted';
COMMENT ON COLUMN relay.failed IS 'positions in purposes, counted from 1, of the calls that failed';
COMMENT ON COLUMN relay.lost_wei IS
  'what payments that failed in it cost, unless the delay may have been ours';

CREATE TABLE relay_member (
  chain int NOT NULL,
  purpose bytea NOT NULL CHECK (length(purpose) = 32),
  relay_id bigint NOT NULL REFERENCES relay (id) ON DELETE CASCADE,
  PRIMARY KEY (chain, purpose)
);
GRANT SELECT, INSERT, UPDATE ON relay_member TO trust_api;

COMMENT ON TABLE relay_member IS
  'The one transaction for each purpose, no matter which account sends it, until that transaction is lost.';

CREATE TABLE relay_upkeep (
  chain int NOT NULL,
  sender bytea NOT NULL CHECK (length(sender) = 20),
  held_until timestamptz NOT NULL,
  PRIMARY KEY (chain, sender)
);
GRANT SELECT, INSERT, UPDATE ON relay_upkeep TO trust_api;

COMMENT ON TABLE relay_upkeep IS 'Which accounts a process is tending, so that others leave them alone.';
COMMENT ON COLUMN relay_upkeep.held_until IS 'when another process may take the account over';
