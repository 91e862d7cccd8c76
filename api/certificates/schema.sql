CREATE TABLE certificate (
  id text PRIMARY KEY CHECK (id ~ '^[0-9a-f]{16}$'),
  product text NOT NULL,
  test_version int NOT NULL,
  result text NOT NULL CHECK (result IN ('pass', 'fail')),
  level text NOT NULL,
  wallet bytea NOT NULL CHECK (length(wallet) = 20),
  checks jsonb NOT NULL,
  detected jsonb NOT NULL,
  issued_at timestamptz NOT NULL,
  valid_until timestamptz NOT NULL,
  chain int NOT NULL,
  asset bytea NOT NULL,
  nonce bytea NOT NULL,
  also_nonce bytea CHECK (length(also_nonce) = 32),
  third_nonce bytea CHECK (length(third_nonce) = 32),
  tx bytea NOT NULL,
  block_number bigint NOT NULL,
  amount numeric(78) NOT NULL,
  pay_to bytea NOT NULL
);
CREATE INDEX certificate_wallet ON certificate (wallet, issued_at DESC);
CREATE INDEX certificate_standing ON certificate (wallet, product, result, issued_at DESC);
CREATE INDEX certificate_passed ON certificate (issued_at, id) WHERE result = 'pass';
CREATE INDEX certificate_product_passed ON certificate (product, issued_at, id) WHERE result = 'pass';
CREATE INDEX certificate_failed ON certificate (wallet, valid_until) WHERE result = 'fail';
SELECT make_permanent('certificate');
GRANT SELECT, INSERT ON certificate TO trust_api;

COMMENT ON TABLE certificate IS 'Issued certificates of wallets, PASS and FAIL (docs/certificates.md). Permanent.';
COMMENT ON COLUMN certificate.product IS 'name of the test';
COMMENT ON COLUMN certificate.test_version IS 'version of the test''s rules';
COMMENT ON COLUMN certificate.level IS 'the level that the certificate attests, as its badge shows it';
COMMENT ON COLUMN certificate.checks IS 'result of each check, by its name';
COMMENT ON COLUMN certificate.detected IS 'the observations, for the certificate''s page';
COMMENT ON COLUMN certificate.nonce IS
  'with chain, asset, and wallet: the payment that bought the test; tx, block_number, amount, and pay_to are its settlement';
COMMENT ON COLUMN certificate.also_nonce IS
  'the second payment of the wallet that the result depends on, or null';
COMMENT ON COLUMN certificate.third_nonce IS
  'the third payment that a PASS of the retry safety test depends on: entry, lost order, and plain order; null for every other certificate';
COMMENT ON COLUMN certificate.amount IS 'atomic units of the asset';

CREATE FUNCTION queue_certificate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log_pending (type, ref) VALUES ('certificate', NEW.id) ON CONFLICT DO NOTHING;
  -- A payment may be reversed before the certificate that names it is issued.
  IF EXISTS (SELECT FROM settlement_mark WHERE kind = 'reversed' AND payer = NEW.wallet
      AND nonce IN (NEW.nonce, NEW.also_nonce, NEW.third_nonce) AND chain = NEW.chain AND asset = NEW.asset) THEN
    INSERT INTO log_pending (type, ref) VALUES ('reversal', NEW.id) ON CONFLICT DO NOTHING;
  END IF;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION queue_certificate IS
  'Queues a certificate for the log. An entry that is already queued never makes a sale fail.';
CREATE TRIGGER queue AFTER INSERT ON certificate FOR EACH ROW EXECUTE FUNCTION queue_certificate();

CREATE FUNCTION queue_reversals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log_pending (type, ref)
    SELECT 'reversal', id FROM certificate
    WHERE wallet = NEW.payer AND NEW.nonce IN (nonce, also_nonce, third_nonce) AND chain = NEW.chain AND asset = NEW.asset
      AND NOT EXISTS (SELECT FROM log_entry WHERE type = 'reversal' AND ref = certificate.id)
    ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION queue_reversals IS 'Queues, for the log, the reversal of every certificate that depends on a reversed payment.';
CREATE TRIGGER queue AFTER INSERT ON settlement_mark FOR EACH ROW WHEN (NEW.kind = 'reversed')
  EXECUTE FUNCTION queue_reversals();

CREATE TABLE published_proof (
  certificate text PRIMARY KEY,
  document jsonb NOT NULL,
  published_at timestamptz NOT NULL DEFAULT now()
);
SELECT make_permanent('published_proof');
GRANT SELECT, INSERT ON published_proof TO trust_api;

COMMENT ON TABLE published_proof IS 'Proofs of FAIL certificates, published once the withheld signature can no longer be used. Permanent.';
COMMENT ON COLUMN published_proof.document IS 'the proof, with the payer''s signature';

CREATE FUNCTION queue_proof() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log_pending (type, ref) VALUES ('proof', NEW.certificate) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION queue_proof IS 'Queues a published proof for the log.';
CREATE TRIGGER queue AFTER INSERT ON published_proof FOR EACH ROW EXECUTE FUNCTION queue_proof();

CREATE TABLE certificate_credential (
  certificate text PRIMARY KEY CHECK (certificate ~ '^[0-9a-f]{16}$'),
  document text NOT NULL
);
SELECT make_permanent('certificate_credential');
GRANT SELECT, INSERT ON certificate_credential TO trust_api;

COMMENT ON TABLE certificate_credential IS 'The credentials that publications refer to by hash. Permanent.';
COMMENT ON COLUMN certificate_credential.document IS 'byte for byte';

CREATE TABLE publication (
  certificate text NOT NULL CHECK (certificate ~ '^[0-9a-f]{16}$'),
  registry text NOT NULL CHECK (registry IN ('reputation', 'validation')),
  chain int NOT NULL,
  contract bytea NOT NULL CHECK (length(contract) = 20),
  agent numeric(78) NOT NULL,
  request bytea CHECK (length(request) = 32),
  from_block bigint NOT NULL,
  state text NOT NULL DEFAULT 'ordered' CHECK (state IN
    ('ordered', 'sending', 'mined', 'published', 'withdrawing', 'withdrawal_mined', 'withdrawn', 'refused', 'failed')),
  attempt int NOT NULL DEFAULT 0,
  reason text,
  publisher bytea CHECK (length(publisher) = 20),
  feedback_index numeric(20),
  tx bytea CHECK (length(tx) = 32),
  withdrawal_tx bytea CHECK (length(withdrawal_tx) = 32),
  block_number bigint,
  block_hash bytea CHECK (length(block_hash) = 32),
  charged bigint NOT NULL DEFAULT 0,
  charged_on date,
  ordered_at timestamptz NOT NULL DEFAULT now(),
  next_attempt_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (certificate, registry),
  CHECK ((registry = 'validation') = (request IS NOT NULL)),
  CHECK (state NOT IN ('mined', 'withdrawal_mined') OR (block_number IS NOT NULL AND block_hash IS NOT NULL)),
  CHECK (state NOT IN ('refused', 'failed', 'withdrawing', 'withdrawn') OR reason IS NOT NULL)
);
CREATE INDEX publication_due ON publication (next_attempt_at) WHERE state NOT IN ('published', 'withdrawn', 'refused', 'failed');
CREATE INDEX publication_charged ON publication (charged_on) WHERE charged_on IS NOT NULL;
GRANT SELECT, INSERT, UPDATE ON publication TO trust_api;

COMMENT ON TABLE publication IS
  'Publications of certificates in ERC-8004 registries: one row for each certificate and registry.';
COMMENT ON COLUMN publication.chain IS 'EIP-155 id of the chain of the registry';
COMMENT ON COLUMN publication.contract IS 'address of the registry';
COMMENT ON COLUMN publication.agent IS 'id of the agent in the identity registry';
COMMENT ON COLUMN publication.request IS 'hash of the validation request that it answers; null for feedback';
COMMENT ON COLUMN publication.from_block IS 'block of the order''s payment; nothing about the certificate was published before it';
COMMENT ON COLUMN publication.attempt IS 'number of transactions for the current step that were mined without effect';
COMMENT ON COLUMN publication.reason IS 'why nothing is published or why it was withdrawn, or null';
COMMENT ON COLUMN publication.publisher IS 'the account that published it; null before one did';
COMMENT ON COLUMN publication.feedback_index IS
  'the registry''s index of the feedback; null for an answer, and before the feedback is mined';
COMMENT ON COLUMN publication.block_number IS
  'with block_hash: where the current step was mined, or null while it is not mined';
COMMENT ON COLUMN publication.charged IS 'gas charged to the day''s budget on charged_on (UTC)';
COMMENT ON COLUMN publication.charged_on IS 'the day (UTC) of charged';
COMMENT ON COLUMN publication.next_attempt_at IS 'when it is worked on next';

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

COMMENT ON TABLE test_session IS 'Runs of behavioral tests (docs/behavior.md).';
COMMENT ON COLUMN test_session.id IS 'derived from the payment that opened the session; its certificate has the same id';
COMMENT ON COLUMN test_session.product IS 'name of the test';
COMMENT ON COLUMN test_session.token_shared IS
  'the response that contains the token was sent to an address other than sender, so a stranger may have it; from then on the token counts only from sender';
COMMENT ON COLUMN test_session.sender IS
  'SHA-256 of the wallet and the client address that opened the session or, until the token is shared, last used the token';
COMMENT ON COLUMN test_session.nonce IS
  'with chain, asset, and wallet: the payment that opened the session; tx, block_number, amount, and pay_to are its settlement';
COMMENT ON COLUMN test_session.amount IS 'atomic units of the asset';
COMMENT ON COLUMN test_session.version IS 'x402 protocol version of that payment';
COMMENT ON COLUMN test_session.bait_first IS 'the randomly drawn order of the two challenges';
COMMENT ON COLUMN test_session.decoy IS 'payee of the bait for calls that present the token';
COMMENT ON COLUMN test_session.wallet_decoy IS 'payee of the bait for calls that are matched only by their wallet';
COMMENT ON COLUMN test_session.lapses_at IS 'when a run without a verdict ends';
COMMENT ON COLUMN test_session.served IS
  'for calls with the token and for calls matched by wallet: when each challenge was last served, and which one was last';
COMMENT ON COLUMN test_session.control_nonce IS 'the payment of the control, the order that should be paid; null until paid';

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
COMMENT ON COLUMN lost_order.nonce IS 'the payment that settled for the order; null before that';
COMMENT ON COLUMN lost_order.sender IS 'SHA-256 of the wallet and the client address that the payment came from; null before the response is lost';
COMMENT ON COLUMN lost_order.lost_at IS 'when the response was first withheld; null before that';
COMMENT ON COLUMN lost_order.sent_again_at IS 'when a later request presented the same authorization, or null';
COMMENT ON COLUMN lost_order.asked_at IS 'when the payer asked whether the payment had settled, or null';
COMMENT ON COLUMN lost_order.second_at IS
  'when a second authorization arrived that rules out a PASS but does not prove a FAIL, or null';

CREATE TABLE rehearsal_session (LIKE test_session INCLUDING ALL);
GRANT SELECT, INSERT, UPDATE, DELETE ON rehearsal_session TO trust_api;

COMMENT ON TABLE rehearsal_session IS
  'Rehearsals of behavioral tests: the columns of test_session. They are never published, and they are pruned.';

CREATE TABLE rehearsal_lost_order (
  LIKE lost_order INCLUDING ALL,
  FOREIGN KEY (session) REFERENCES rehearsal_session (id) ON DELETE CASCADE
);
GRANT SELECT, INSERT, UPDATE ON rehearsal_lost_order TO trust_api;

COMMENT ON TABLE rehearsal_lost_order IS 'The lost orders of rehearsals: the columns of lost_order.';

CREATE TABLE decoy_watch (
  chain int PRIMARY KEY,
  next_block bigint NOT NULL DEFAULT 0,
  due_at timestamptz NOT NULL
);
GRANT SELECT, INSERT, UPDATE ON decoy_watch TO trust_api;

COMMENT ON TABLE decoy_watch IS 'Progress of reading transfers to and from decoys.';
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
  'Totals that each sender has paid to each decoy and received back, in final blocks. Amounts in atomic units of USDC.';
COMMENT ON COLUMN decoy_debt.session IS 'name from which the decoy''s key is derived: the session''s id, or "<id>/wallet"';
COMMENT ON COLUMN decoy_debt.since IS 'time since which something is owed';
COMMENT ON COLUMN decoy_debt.due_at IS 'when the refund is tried next';
COMMENT ON COLUMN decoy_debt.attempts IS 'number of attempts since the last final refund';
COMMENT ON COLUMN decoy_debt.pending_value IS 'amount of the refund that was signed last; null if no refund is pending';
COMMENT ON COLUMN decoy_debt.pending_before IS 'validBefore of that refund, Unix seconds';
COMMENT ON COLUMN decoy_debt.submitted_at IS 'when a refund was last submitted, or null';
