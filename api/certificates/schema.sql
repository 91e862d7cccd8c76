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
COMMENT ON COLUMN certificate.level IS 'what the certificate attests, as its badge shows it';
COMMENT ON COLUMN certificate.checks IS 'result of each check, by its name';
COMMENT ON COLUMN certificate.detected IS 'what was observed, for the certificate''s page';
COMMENT ON COLUMN certificate.nonce IS
  'with chain, asset, and wallet: the payment that bought the test; tx, block_number, amount, and pay_to are its settlement';
COMMENT ON COLUMN certificate.also_nonce IS
  'the second payment of the wallet that the result depends on; null: there is none';
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
  look_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (certificate, registry),
  CHECK ((registry = 'validation') = (request IS NOT NULL)),
  CHECK (state NOT IN ('mined', 'withdrawal_mined') OR (block_number IS NOT NULL AND block_hash IS NOT NULL)),
  CHECK (state NOT IN ('refused', 'failed', 'withdrawing', 'withdrawn') OR reason IS NOT NULL)
);
CREATE INDEX publication_due ON publication (look_at) WHERE state NOT IN ('published', 'withdrawn', 'refused', 'failed');
CREATE INDEX publication_charged ON publication (charged_on) WHERE charged_on IS NOT NULL;
GRANT SELECT, INSERT, UPDATE ON publication TO trust_api;

COMMENT ON TABLE publication IS
  'What is published about certificates in the registries of ERC-8004: one row for each certificate and registry.';
COMMENT ON COLUMN publication.chain IS 'EIP-155 id of the chain of the registry';
COMMENT ON COLUMN publication.contract IS 'address of the registry';
COMMENT ON COLUMN publication.agent IS 'id of the agent in the identity registry';
COMMENT ON COLUMN publication.request IS 'hash of the validation request that it answers; null for feedback';
COMMENT ON COLUMN publication.from_block IS 'block of the order''s payment; nothing about the certificate was published before it';
COMMENT ON COLUMN publication.attempt IS 'how many transactions for the current step were mined without effect';
COMMENT ON COLUMN publication.reason IS 'why nothing is published, or why it was withdrawn; null: neither';
COMMENT ON COLUMN publication.publisher IS 'the account that published it; null before one did';
COMMENT ON COLUMN publication.feedback_index IS
  'the registry''s index of the feedback; null for an answer, and before the feedback is mined';
COMMENT ON COLUMN publication.block_number IS
  'with block_hash: where the current step was mined; null: it is not mined';
COMMENT ON COLUMN publication.charged IS 'gas charged to the day''s budget on charged_on (UTC)';
COMMENT ON COLUMN publication.look_at IS 'when it is worked on next';
