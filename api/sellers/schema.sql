CREATE TABLE seller_exam (
  id text PRIMARY KEY CHECK (id ~ '^[0-9a-f]{32}$'),
  origin text NOT NULL,
  url text NOT NULL,
  method text NOT NULL,
  body text,
  content_type text NOT NULL,
  other text,
  pay_to bytea NOT NULL CHECK (length(pay_to) = 20),
  amount numeric(78) NOT NULL CHECK (amount > 0),
  path_prefix text NOT NULL CHECK (path_prefix ~ '^/(.*/)?$'),
  consent jsonb NOT NULL,
  chain int NOT NULL,
  asset bytea NOT NULL CHECK (length(asset) = 20),
  payer bytea NOT NULL CHECK (length(payer) = 20),
  nonce bytea NOT NULL CHECK (length(nonce) = 32),
  tx bytea NOT NULL CHECK (length(tx) = 32),
  block_number bigint NOT NULL,
  ordered_at timestamptz NOT NULL,
  again_of text
);
CREATE INDEX seller_exam_bought ON seller_exam (payer, nonce);
CREATE INDEX seller_exam_again_of ON seller_exam (again_of) WHERE again_of IS NOT NULL;
SELECT make_permanent('seller_exam');
GRANT SELECT, INSERT ON seller_exam TO trust_api;

COMMENT ON TABLE seller_exam IS 'Exams of sellers as they were ordered (docs/seller-exam.md). Permanent.';
COMMENT ON COLUMN seller_exam.body IS 'body of the examined request, or null';
COMMENT ON COLUMN seller_exam.other IS
  'another route of the seller, where a payment for this one is presented; null if the buyer named none';
COMMENT ON COLUMN seller_exam.pay_to IS 'with amount: the seller''s quote at the time of the order; payments on other terms are never signed';
COMMENT ON COLUMN seller_exam.amount IS 'atomic units of USDC';
COMMENT ON COLUMN seller_exam.path_prefix IS 'the paths that the record is about; "/" is the whole origin';
COMMENT ON COLUMN seller_exam.consent IS 'the line of the origin''s consent file that let this buyer order the exam';
COMMENT ON COLUMN seller_exam.nonce IS
  'with chain, asset, and payer: the payment that bought the exam; tx and block_number are its settlement';
COMMENT ON COLUMN seller_exam.again_of IS
  'the corrected exam that this one repeats free of charge, or null if it was bought. Not unique, because an exam that our own fault interrupted may be taken again; the id keeps one repetition from being stored twice';

CREATE TABLE seller_exam_result (
  exam text PRIMARY KEY REFERENCES seller_exam (id),
  origin text NOT NULL,
  pay_to bytea NOT NULL CHECK (length(pay_to) = 20),
  outcome text NOT NULL CHECK (outcome IN ('complete', 'interrupted')),
  level text CHECK (level IN ('full', 'safe')),
  is_public boolean NOT NULL,
  is_our_fault boolean NOT NULL DEFAULT false,
  note text,
  checks text NOT NULL,
  evidence text CHECK (length(evidence) <= 8388608),
  evidence_sha256 bytea NOT NULL CHECK (length(evidence_sha256) = 32),
  spent numeric(78),
  runs int NOT NULL,
  began_at timestamptz NOT NULL,
  ended_at timestamptz NOT NULL,
  valid_until timestamptz,
  CHECK (level IS NULL OR outcome = 'complete'),
  CHECK (is_public = (outcome = 'complete')),
  CHECK ((valid_until IS NOT NULL) = is_public),
  CHECK (outcome = 'interrupted' OR NOT is_our_fault)
);
CREATE INDEX seller_exam_result_origin ON seller_exam_result (origin, ended_at DESC) WHERE is_public;
CREATE INDEX seller_exam_result_payee ON seller_exam_result (pay_to, ended_at DESC) WHERE is_public;
CREATE INDEX seller_exam_result_newest ON seller_exam_result (ended_at DESC, exam DESC) WHERE is_public;
CREATE INDEX seller_exam_result_ended ON seller_exam_result (origin, ended_at DESC);
SELECT make_permanent('seller_exam_result', 'DELETE');
GRANT SELECT, INSERT ON seller_exam_result TO trust_api;

CREATE TABLE seller_exam_removal (
  exam text PRIMARY KEY REFERENCES seller_exam_result (exam),
  reason text NOT NULL CHECK (length(reason) BETWEEN 1 AND 500),
  at timestamptz NOT NULL DEFAULT now()
);
SELECT make_permanent('seller_exam_removal');
GRANT SELECT ON seller_exam_removal TO trust_api;

COMMENT ON TABLE seller_exam_removal IS
  'Exams whose evidence, including the seller''s answers, was removed on the order of a court or for someone''s privacy. Public and permanent.';

CREATE FUNCTION refuse_all_but_removal() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  complete seller_exam_result := NEW;
BEGIN
  complete.evidence := OLD.evidence;
  IF NEW.evidence IS NOT NULL OR complete IS DISTINCT FROM OLD
      OR NOT EXISTS (SELECT FROM seller_exam_removal WHERE exam = OLD.exam) THEN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
COMMENT ON FUNCTION refuse_all_but_removal IS
  'Rejects every change of a result, except that its evidence becomes null once a row in seller_exam_removal gives the reason.';
CREATE TRIGGER permanent_but_removal BEFORE UPDATE ON seller_exam_result FOR EACH ROW EXECUTE FUNCTION refuse_all_but_removal();
ALTER TABLE seller_exam_result ENABLE ALWAYS TRIGGER permanent_but_removal;

COMMENT ON TABLE seller_exam_result IS 'Results of exams. Permanent; one that turns out to be wrong gets a correction.';
COMMENT ON COLUMN seller_exam_result.level IS 'the level that the seller passed, or null';
COMMENT ON COLUMN seller_exam_result.is_public IS
  'whether it can be found by origin and payee; every result can be found by its exam''s id';
COMMENT ON COLUMN seller_exam_result.is_our_fault IS
  'whether a failure on our side interrupted the exam, so that its buyer is refunded or may take a free one again';
COMMENT ON COLUMN seller_exam_result.note IS 'why the exam was interrupted; null if it is complete';
COMMENT ON COLUMN seller_exam_result.checks IS
  'JSON as text, like evidence, because a seller''s words may contain characters that jsonb rejects';
COMMENT ON COLUMN seller_exam_result.evidence IS 'null if removed, which seller_exam_removal records';
COMMENT ON COLUMN seller_exam_result.spent IS
  'the amount that the exam''s payments took from our account, in atomic units of USDC; null if unknown';
COMMENT ON COLUMN seller_exam_result.runs IS 'number of runs';

CREATE TABLE seller_exam_correction (
  exam text PRIMARY KEY REFERENCES seller_exam_result (exam),
  reason text NOT NULL,
  at timestamptz NOT NULL DEFAULT now()
);
SELECT make_permanent('seller_exam_correction');
GRANT SELECT, INSERT ON seller_exam_correction TO trust_api;

COMMENT ON TABLE seller_exam_correction IS 'Statements that a result was wrong. Permanent, as is the result.';

CREATE TABLE seller_exam_grant (
  exam text PRIMARY KEY REFERENCES seller_exam_correction (exam),
  token_sha256 bytea NOT NULL CHECK (length(token_sha256) = 32),
  at timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE seller_exam ADD FOREIGN KEY (again_of) REFERENCES seller_exam_grant (exam);
GRANT SELECT, INSERT, UPDATE (token_sha256) ON seller_exam_grant TO trust_api;

COMMENT ON TABLE seller_exam_grant IS 'One free exam for each corrected one.';
COMMENT ON COLUMN seller_exam_grant.token_sha256 IS 'of the token given to the seller; a new token may replace it until it is used';

CREATE TABLE seller_exam_settlement (
  exam text NOT NULL REFERENCES seller_exam_result (exam),
  nonce bytea NOT NULL CHECK (length(nonce) = 32),
  tx bytea NOT NULL CHECK (length(tx) = 32),
  block_number bigint NOT NULL,
  payer bytea NOT NULL CHECK (length(payer) = 20),
  pay_to bytea NOT NULL CHECK (length(pay_to) = 20),
  value numeric(78) NOT NULL,
  PRIMARY KEY (exam, nonce)
);
SELECT make_permanent('seller_exam_settlement');
GRANT SELECT, INSERT ON seller_exam_settlement TO trust_api;

COMMENT ON TABLE seller_exam_settlement IS 'An exam''s payments as the chain showed them when the exam ended. Permanent.';
COMMENT ON COLUMN seller_exam_settlement.value IS 'atomic units of USDC';

CREATE TABLE seller_exam_reversal (
  exam text PRIMARY KEY REFERENCES seller_exam_result (exam),
  at timestamptz NOT NULL DEFAULT now()
);
SELECT make_permanent('seller_exam_reversal');
GRANT SELECT, INSERT ON seller_exam_reversal TO trust_api;

COMMENT ON TABLE seller_exam_reversal IS 'Published exams that lost one of their payments to a reorganization. Permanent.';

CREATE VIEW seller_exam_gone AS
  SELECT exam, min(at) AS at FROM (
    SELECT exam, at FROM seller_exam_reversal
    UNION ALL
    SELECT e.id, m.at FROM settlement_mark m
      JOIN seller_exam e ON e.payer = m.payer AND e.nonce = m.nonce AND e.chain = m.chain AND e.asset = m.asset
      WHERE m.kind = 'reversed'
  ) AS gone GROUP BY exam;
GRANT SELECT ON seller_exam_gone TO trust_api;
COMMENT ON VIEW seller_exam_gone IS
  'Exams that depend on a payment that is gone, one that they made or the one that bought them, and since when.';

CREATE TABLE seller_exam_refund (
  exam text PRIMARY KEY REFERENCES seller_exam_result (exam),
  tx bytea NOT NULL CHECK (length(tx) = 32),
  block_number bigint NOT NULL,
  at timestamptz NOT NULL DEFAULT now()
);
SELECT make_permanent('seller_exam_refund');
GRANT SELECT, INSERT ON seller_exam_refund TO trust_api;

COMMENT ON TABLE seller_exam_refund IS 'Refunds to the buyers of interrupted exams, each in a final block. Permanent.';

CREATE TABLE seller_exam_signature (
  nonce bytea PRIMARY KEY CHECK (length(nonce) = 32),
  exam text NOT NULL REFERENCES seller_exam (id),
  run uuid NOT NULL,
  pay_to bytea NOT NULL CHECK (length(pay_to) = 20),
  value numeric(78) NOT NULL,
  valid_after numeric(78) NOT NULL,
  valid_before numeric(78) NOT NULL,
  cost numeric(78) NOT NULL,
  signed_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX seller_exam_signature_exam ON seller_exam_signature (exam);
CREATE INDEX seller_exam_signature_cost ON seller_exam_signature (signed_at) WHERE cost > 0;
SELECT make_permanent('seller_exam_signature');
GRANT SELECT, INSERT ON seller_exam_signature TO trust_api;

COMMENT ON TABLE seller_exam_signature IS
  'Every payment authorization of an exam, stored before it is signed. Amounts in atomic units of USDC. Permanent.';
COMMENT ON COLUMN seller_exam_signature.run IS 'lease token of the run that signed it';
COMMENT ON COLUMN seller_exam_signature.valid_after IS 'Unix seconds';
COMMENT ON COLUMN seller_exam_signature.valid_before IS 'Unix seconds';
COMMENT ON COLUMN seller_exam_signature.cost IS
  'the amount that its settlement would take from our account: zero for one that cannot settle';

CREATE TABLE seller_exam_open (
  origin text PRIMARY KEY,
  payer bytea NOT NULL CHECK (length(payer) = 20),
  nonce bytea NOT NULL CHECK (length(nonce) = 32),
  amount numeric(78) NOT NULL CHECK (amount > 0),
  until timestamptz NOT NULL
);
GRANT SELECT, INSERT, UPDATE, DELETE ON seller_exam_open TO trust_api;

COMMENT ON TABLE seller_exam_open IS
  'Open orders, at most one for each origin: briefly after intake and, once its payment may settle, until that payment is void or the exam has a result.';
COMMENT ON COLUMN seller_exam_open.nonce IS 'with payer: the payment that buys the exam';
COMMENT ON COLUMN seller_exam_open.amount IS 'price of one payment to the seller, in atomic units of USDC';
COMMENT ON COLUMN seller_exam_open.until IS 'infinity once the payment may settle';

CREATE TABLE seller_exam_work (
  exam text PRIMARY KEY REFERENCES seller_exam (id),
  ordered_at timestamptz NOT NULL,
  due_at timestamptz NOT NULL DEFAULT now(),
  lease_token uuid,
  lease_until timestamptz NOT NULL DEFAULT '-infinity',
  attempts int NOT NULL DEFAULT 0
);
GRANT SELECT, INSERT, UPDATE, DELETE ON seller_exam_work TO trust_api;

COMMENT ON TABLE seller_exam_work IS 'Exams that have no result yet, or whose refund is still owed.';
COMMENT ON COLUMN seller_exam_work.lease_token IS 'the run that has the exam; null if none has had it';
COMMENT ON COLUMN seller_exam_work.lease_until IS 'after this, another process may take the exam';
COMMENT ON COLUMN seller_exam_work.attempts IS 'number of times that a process took it';

CREATE TABLE seller_exam_watch (
  exam text PRIMARY KEY REFERENCES seller_exam_result (exam),
  due_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX seller_exam_watch_due ON seller_exam_watch (due_at);
GRANT SELECT, INSERT, UPDATE, DELETE ON seller_exam_watch TO trust_api;

COMMENT ON TABLE seller_exam_watch IS 'Published exams whose payments are not final yet.';
COMMENT ON COLUMN seller_exam_watch.due_at IS 'when their payments are checked next';

CREATE TABLE seller_probe (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  origin text NOT NULL,
  request bytea NOT NULL CHECK (length(request) = 32),
  at timestamptz NOT NULL DEFAULT now(),
  found jsonb
);
CREATE INDEX seller_probe_request ON seller_probe (request, at DESC);
CREATE INDEX seller_probe_origin ON seller_probe (origin, at DESC);
GRANT SELECT, INSERT, UPDATE, DELETE ON seller_probe TO trust_api;

COMMENT ON TABLE seller_probe IS 'Sellers'' answers from before an exam was ordered. Rows are deleted after an hour.';
COMMENT ON COLUMN seller_probe.request IS 'SHA-256 of the request to the seller';
COMMENT ON COLUMN seller_probe.found IS 'the consent file and the quote; null while the seller is being contacted';

CREATE FUNCTION require_open_exam() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE seller_exam_open SET until = 'infinity'
    WHERE origin = NEW.input->'settled'->>'origin' AND payer = NEW.payer AND nonce = NEW.nonce;
  RETURN CASE WHEN FOUND THEN NEW END;
END $$;
COMMENT ON FUNCTION require_open_exam IS
  'Leaves a payment unchanged if its order is not open, so that its signature never leaves the service.';
CREATE TRIGGER open_exam BEFORE UPDATE ON payment FOR EACH ROW
  WHEN (NEW.route = 'test.seller' AND NEW.state = 'settling' AND OLD.state IN ('received', 'void'))
  EXECUTE FUNCTION require_open_exam();

CREATE FUNCTION close_void_exam() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM seller_exam_open WHERE payer = NEW.payer AND nonce = NEW.nonce;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION close_void_exam IS 'Closes the order of a payment that is void.';
CREATE TRIGGER void_exam AFTER UPDATE ON payment FOR EACH ROW
  WHEN (NEW.route = 'test.seller' AND NEW.state = 'void' AND OLD.state NOT IN ('void', 'fulfilled'))
  EXECUTE FUNCTION close_void_exam();

CREATE FUNCTION close_exam() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM seller_exam_open o USING seller_exam e
    WHERE e.id = NEW.exam AND o.origin = e.origin AND o.payer = e.payer AND o.nonce = e.nonce;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION close_exam IS 'Closes the order of an exam that has a result.';
CREATE TRIGGER closed AFTER INSERT ON seller_exam_result FOR EACH ROW EXECUTE FUNCTION close_exam();

CREATE FUNCTION queue_seller_exam() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log_pending (type, ref) VALUES ('seller_certificate', NEW.exam) ON CONFLICT DO NOTHING;
  -- The payment that bought it may be reversed before it ends.
  IF EXISTS (SELECT FROM seller_exam_gone WHERE exam = NEW.exam) THEN
    INSERT INTO log_pending (type, ref) VALUES ('reversal', NEW.exam) ON CONFLICT DO NOTHING;
  END IF;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION queue_seller_exam IS 'Queues a published result for the log.';
CREATE TRIGGER queue AFTER INSERT ON seller_exam_result FOR EACH ROW WHEN (NEW.is_public)
  EXECUTE FUNCTION queue_seller_exam();

CREATE FUNCTION queue_seller_correction() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log_pending (type, ref)
    SELECT 'seller_correction', exam FROM seller_exam_result WHERE exam = NEW.exam AND is_public
    ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION queue_seller_correction IS 'Queues the correction of a published result for the log.';
CREATE TRIGGER queue AFTER INSERT ON seller_exam_correction FOR EACH ROW EXECUTE FUNCTION queue_seller_correction();

CREATE FUNCTION queue_seller_reversal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log_pending (type, ref)
    SELECT 'reversal', exam FROM seller_exam_result WHERE exam = NEW.exam AND is_public
      AND NOT EXISTS (SELECT FROM log_entry WHERE type = 'reversal' AND ref = NEW.exam)
    ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION queue_seller_reversal IS 'Queues the reversal of a published result for the log.';
CREATE TRIGGER queue AFTER INSERT ON seller_exam_reversal FOR EACH ROW EXECUTE FUNCTION queue_seller_reversal();

CREATE FUNCTION queue_bought_reversals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log_pending (type, ref)
    SELECT 'reversal', r.exam FROM seller_exam e JOIN seller_exam_result r ON r.exam = e.id AND r.is_public
    WHERE e.payer = NEW.payer AND e.nonce = NEW.nonce AND e.chain = NEW.chain AND e.asset = NEW.asset
      AND NOT EXISTS (SELECT FROM log_entry WHERE type = 'reversal' AND ref = r.exam)
    ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION queue_bought_reversals IS
  'Queues, for the log, the reversal of published results whose exams a reversed payment bought.';
CREATE TRIGGER queue_sellers AFTER INSERT ON settlement_mark FOR EACH ROW WHEN (NEW.kind = 'reversed')
  EXECUTE FUNCTION queue_bought_reversals();

CREATE TABLE seller_rehearsal (
  id text PRIMARY KEY CHECK (id ~ '^[0-9a-f]{32}$'),
  origin text NOT NULL,
  request jsonb NOT NULL,
  ordered_at timestamptz NOT NULL DEFAULT now(),
  taken_at timestamptz,
  result text
);
CREATE INDEX seller_rehearsal_open ON seller_rehearsal (ordered_at) WHERE result IS NULL;
GRANT SELECT, INSERT, UPDATE (taken_at, result), DELETE ON seller_rehearsal TO trust_api;

COMMENT ON TABLE seller_rehearsal IS
  'Rehearsals of the seller''s exam, in test money. They are never published, and they are pruned.';
COMMENT ON COLUMN seller_rehearsal.request IS 'the examined request, with the seller''s quote for it';
COMMENT ON COLUMN seller_rehearsal.taken_at IS 'when a process began it, which happens only once; null while it waits';
COMMENT ON COLUMN seller_rehearsal.result IS
  'JSON as text, because a seller''s words may contain characters that jsonb rejects; null until it has ended';
