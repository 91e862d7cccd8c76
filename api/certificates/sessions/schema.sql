CREATE TABLE test_session (
  id text PRIMARY KEY CHECK (id ~ '^[0-9a-f]{16}$'),
  product text NOT NULL,
  wallet bytea NOT NULL CHECK (length(wallet) = 20),
  token_sha256 bytea NOT NULL CHECK (length(token_sha256) = 32),
  token_shared boolean NOT NULL DEFAULT false,
  sender bytea NOT NULL CHECK (length(sender) = 32),
  chain int NOT NULL,
  asset bytea NOT NULL,
  nonce bytea NOT NULL,
  tx bytea NOT NULL,
  block_number bigint NOT NULL,
  amount numeric(78) NOT NULL,
  pay_to bytea NOT NULL,
  version text NOT NULL CHECK (version IN ('v1', 'v2')),
  bait_first boolean NOT NULL,
  decoy bytea NOT NULL CHECK (length(decoy) = 20),
  wallet_decoy bytea NOT NULL CHECK (length(wallet_decoy) = 20),
  started_at timestamptz NOT NULL,
  lapses_at timestamptz NOT NULL,
  served jsonb NOT NULL,
  control_nonce bytea,
  control_tx bytea,
  verdict text CHECK (verdict IN ('pass', 'fail')),
  verdict_at timestamptz,
  CHECK ((control_nonce IS NULL) = (control_tx IS NULL)),
  CHECK ((verdict IS NULL) = (verdict_at IS NULL))
);
CREATE INDEX test_session_wallet ON test_session (wallet, product, started_at DESC);
CREATE INDEX test_session_started ON test_session (started_at);
GRANT SELECT, INSERT, UPDATE ON test_session TO trust_api;

COMMENT ON TABLE test_session IS 'Runs of behavioral tests (docs/behaviour.md).';
COMMENT ON COLUMN test_session.id IS 'derived from the payment that opened the session; its certificate has the same id';
COMMENT ON COLUMN test_session.product IS 'name of the test';
COMMENT ON COLUMN test_session.token_shared IS
  'the response that contains the token was sent to an address other than sender, so a stranger may have it; from then on the token counts from sender alone';
COMMENT ON COLUMN test_session.sender IS
  'SHA-256 of the wallet and the client address that opened the session or, until the token is shared, last used the token';
COMMENT ON COLUMN test_session.nonce IS
  'with chain, asset, and wallet: the payment that opened the session; tx, block_number, amount, and pay_to are its settlement';
COMMENT ON COLUMN test_session.amount IS 'atomic units of the asset';
COMMENT ON COLUMN test_session.version IS 'x402 protocol version of that payment';
COMMENT ON COLUMN test_session.bait_first IS 'the randomly drawn order of the two challenges';
COMMENT ON COLUMN test_session.decoy IS 'payee of the bait for calls that present the token';
COMMENT ON COLUMN test_session.wallet_decoy IS 'payee of the bait for calls that are matched by their wallet alone';
COMMENT ON COLUMN test_session.served IS
  'for calls with the token and for calls matched by wallet: when each challenge was last served, and which one was last';
COMMENT ON COLUMN test_session.control_nonce IS 'the payment of the control, the order that should be paid; null: not paid yet';

CREATE TABLE lost_order (
  session text PRIMARY KEY REFERENCES test_session (id),
  way text NOT NULL,
  nonce bytea CHECK (length(nonce) = 32),
  tx bytea CHECK (length(tx) = 32),
  sender bytea CHECK (length(sender) = 32),
  lost_at timestamptz,
  sent_again_at timestamptz,
  asked_at timestamptz,
  second_at timestamptz,
  CHECK ((nonce IS NULL) = (tx IS NULL)),
  CHECK ((sender IS NULL) = (lost_at IS NULL)),
  CHECK (lost_at IS NOT NULL OR (sent_again_at IS NULL AND asked_at IS NULL))
);
CREATE INDEX lost_order_nonce ON lost_order (nonce) WHERE nonce IS NOT NULL;
GRANT SELECT, INSERT, UPDATE ON lost_order TO trust_api;

COMMENT ON TABLE lost_order IS 'The order of a retry safety test whose response is lost on purpose.';
COMMENT ON COLUMN lost_order.way IS 'how the response is lost';
COMMENT ON COLUMN lost_order.nonce IS 'the payment that settled for the order; null: none yet';
COMMENT ON COLUMN lost_order.sender IS 'SHA-256 of the wallet and the client address that the payment came from; null before the response is lost';
COMMENT ON COLUMN lost_order.lost_at IS 'when the response was first withheld; null: not yet';
COMMENT ON COLUMN lost_order.sent_again_at IS 'when a later request presented the same authorization; null: none did';
COMMENT ON COLUMN lost_order.asked_at IS 'when the payer asked whether the payment had settled; null: it did not';
COMMENT ON COLUMN lost_order.second_at IS
  'when a second authorization arrived that rules out a PASS but does not prove a FAIL; null: none did';

CREATE TABLE decoy_watch (
  chain int PRIMARY KEY,
  next_block bigint NOT NULL DEFAULT 0,
  due_at timestamptz NOT NULL
);
GRANT SELECT, INSERT, UPDATE ON decoy_watch TO trust_api;

COMMENT ON TABLE decoy_watch IS 'How far transfers to and from decoys have been read.';
COMMENT ON COLUMN decoy_watch.next_block IS 'first block that has not been read';
COMMENT ON COLUMN decoy_watch.due_at IS 'when they are read next; the process that moves this time reads them';

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
CREATE INDEX decoy_transfer_block ON decoy_transfer (chain, block_number);
GRANT SELECT, INSERT, DELETE ON decoy_transfer TO trust_api;

COMMENT ON TABLE decoy_transfer IS 'Final transfers to and from decoys, so that each one is counted once. Old ones are deleted.';
COMMENT ON COLUMN decoy_transfer.other IS 'the sender, or the recipient of an outgoing transfer';
COMMENT ON COLUMN decoy_transfer.value IS 'atomic units of USDC';

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
CREATE INDEX decoy_debt_owed ON decoy_debt (owed) WHERE owed > 0;
CREATE INDEX decoy_debt_pending ON decoy_debt (chain) WHERE pending_value IS NOT NULL;
CREATE INDEX decoy_debt_sender ON decoy_debt (sender);
CREATE INDEX decoy_debt_submitted ON decoy_debt (submitted_at) WHERE submitted_at IS NOT NULL;
GRANT SELECT, INSERT, UPDATE ON decoy_debt TO trust_api;

COMMENT ON TABLE decoy_debt IS
  'What each sender has paid to each decoy and received back, in final blocks. Amounts in atomic units of USDC.';
COMMENT ON COLUMN decoy_debt.session IS 'name that the decoy''s key is derived from: the session''s id, or "<id>/wallet"';
COMMENT ON COLUMN decoy_debt.since IS 'since when something is owed';
COMMENT ON COLUMN decoy_debt.due_at IS 'when the refund is tried next';
COMMENT ON COLUMN decoy_debt.attempts IS 'how many times it was tried since the last final refund';
COMMENT ON COLUMN decoy_debt.pending_value IS 'amount of the refund that was signed last; null: no refund is pending';
COMMENT ON COLUMN decoy_debt.pending_before IS 'validBefore of that refund, Unix seconds';
COMMENT ON COLUMN decoy_debt.submitted_at IS 'when a refund was last submitted; null: never';
