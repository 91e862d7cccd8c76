CREATE FUNCTION queue_payment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log_pending (type, ref) VALUES (TG_ARGV[0], '0x' || encode(NEW.payment, 'hex')) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION queue_payment IS
  'Queues a record about an escrowed payment for the log. Argument of the trigger: the type of the entry.';

CREATE TABLE escrow_evaluation (
  payment bytea PRIMARY KEY CHECK (length(payment) = 32),
  decision text NOT NULL CHECK (decision IN ('release', 'refund')),
  rule text NOT NULL,
  record bytea NOT NULL CHECK (length(record) = 32),
  document text NOT NULL
);
SELECT make_permanent('escrow_evaluation');
CREATE TRIGGER queue AFTER INSERT ON escrow_evaluation FOR EACH ROW EXECUTE FUNCTION queue_payment('evaluation');
GRANT SELECT, INSERT ON escrow_evaluation TO trust_api;

COMMENT ON TABLE escrow_evaluation IS 'Signed evaluations of deliveries (docs/escrow.md). Permanent.';
COMMENT ON COLUMN escrow_evaluation.payment IS 'id of the escrowed payment';
COMMENT ON COLUMN escrow_evaluation.decision IS 'the outcome that is due: release or refund';
COMMENT ON COLUMN escrow_evaluation.rule IS 'name of the rule that decided';
COMMENT ON COLUMN escrow_evaluation.record IS 'hash of the record';
COMMENT ON COLUMN escrow_evaluation.document IS 'the signed record, byte for byte';

CREATE TABLE escrow_task (
  payment bytea PRIMARY KEY CHECK (length(payment) = 32),
  chain int NOT NULL,
  contract bytea NOT NULL CHECK (length(contract) = 20),
  info jsonb NOT NULL,
  merchant bytea NOT NULL CHECK (length(merchant) = 20),
  amount numeric(37) NOT NULL,
  held_block bigint NOT NULL,
  decision text NOT NULL CHECK (decision IN ('release', 'refund')),
  record bytea CHECK (length(record) = 32),
  contest_until bigint,
  state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'mined', 'final')),
  found text CHECK (found IN ('release', 'refund')),
  tx bytea,
  block_number bigint,
  block_hash bytea CHECK (length(block_hash) = 32),
  gas bigint NOT NULL,
  next_attempt_at timestamptz NOT NULL DEFAULT now(),
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT escrow_task_mined
    CHECK (state <> 'mined' OR (found IS NOT NULL AND tx IS NOT NULL AND block_number IS NOT NULL AND block_hash IS NOT NULL))
);
CREATE INDEX escrow_task_todo ON escrow_task (next_attempt_at) WHERE state <> 'final';
CREATE INDEX escrow_task_due ON escrow_task (next_attempt_at) WHERE state = 'open';
CREATE INDEX escrow_task_value ON escrow_task (amount DESC) WHERE state = 'open';
CREATE INDEX escrow_task_mined ON escrow_task (block_hash) WHERE state = 'mined';
GRANT SELECT, INSERT, UPDATE ON escrow_task TO trust_api;

COMMENT ON TABLE escrow_task IS 'The one outcome that the service carries to the escrow contract for each payment.';
COMMENT ON COLUMN escrow_task.payment IS 'id of the escrowed payment';
COMMENT ON COLUMN escrow_task.contract IS 'address of the escrow contract';
COMMENT ON COLUMN escrow_task.info IS 'the PaymentInfo struct by which the contract identifies the payment';
COMMENT ON COLUMN escrow_task.amount IS 'maxAmount of info, in atomic units';
COMMENT ON COLUMN escrow_task.held_block IS
  'the block that showed the payment as held; a node''s answer about an earlier block is out of date';
COMMENT ON COLUMN escrow_task.decision IS 'the outcome to carry out; once final, the one that the chain shows';
COMMENT ON COLUMN escrow_task.record IS
  'record hash that is put on chain with the outcome; null if no delivery was evaluated and the refund is due by the clock';
COMMENT ON COLUMN escrow_task.contest_until IS
  'until this time, in Unix seconds of the chain, the payer may contest the release; null if never or no longer';
COMMENT ON COLUMN escrow_task.state IS
  '"open": to be sent or found; "mined": a block contains the outcome; "final": that block is final';
COMMENT ON COLUMN escrow_task.found IS 'the outcome that the mined block shows; null, like tx and the block columns, until there is one';
COMMENT ON COLUMN escrow_task.gas IS 'gas charged to the account for this outcome: first an estimate, then at most what it used';
COMMENT ON COLUMN escrow_task.next_attempt_at IS 'when the task is worked on next';

CREATE TABLE escrow_gas (
  account bytea NOT NULL CHECK (length(account) = 20),
  day date NOT NULL,
  gas bigint NOT NULL,
  PRIMARY KEY (account, day)
);
CREATE INDEX escrow_gas_day ON escrow_gas (day);
GRANT SELECT, INSERT, UPDATE, DELETE ON escrow_gas TO trust_api;

COMMENT ON TABLE escrow_gas IS 'Gas that outcomes cost beyond their fees, by day (UTC). Past days are deleted.';
COMMENT ON COLUMN escrow_gas.account IS 'the account that made the hold, or twenty zero bytes for every payment without an evaluation';

CREATE TABLE escrow_window (
  payment bytea PRIMARY KEY REFERENCES escrow_task,
  seconds int NOT NULL CHECK (seconds BETWEEN 1 AND 1200),
  until bigint NOT NULL,
  conditions json NOT NULL,
  promised json NOT NULL,
  delivered json NOT NULL,
  block bigint
);
SELECT make_permanent('escrow_window');
GRANT SELECT, INSERT ON escrow_window TO trust_api;

COMMENT ON TABLE escrow_window IS 'Contest windows of releases, with what the payer may contest. Permanent.';
COMMENT ON COLUMN escrow_window.until IS 'Unix seconds of the chain';
COMMENT ON COLUMN escrow_window.conditions IS 'the conditions that the payer''s terms bind';
COMMENT ON COLUMN escrow_window.promised IS
  'the claims that the conditions make, as parsed, with the parts of the delivery by which they are judged';
COMMENT ON COLUMN escrow_window.delivered IS
  'measurements of the delivery; json, because jsonb cannot store every text that a merchant can sign';
COMMENT ON COLUMN escrow_window.block IS
  'the block of the evaluation, at which signatures of a merchant that is a contract are judged; null for the head';

CREATE TABLE escrow_contest (
  payment bytea PRIMARY KEY REFERENCES escrow_window,
  merchant bytea NOT NULL CHECK (length(merchant) = 20),
  claim json NOT NULL,
  claim_sha256 bytea NOT NULL CHECK (length(claim_sha256) = 32),
  signature bytea NOT NULL,
  made_at bigint NOT NULL,
  is_open boolean NOT NULL DEFAULT true,
  next_attempt_at timestamptz NOT NULL,
  owner int,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX escrow_contest_open ON escrow_contest (next_attempt_at) WHERE is_open;
GRANT SELECT, INSERT, UPDATE ON escrow_contest TO trust_api;

COMMENT ON TABLE escrow_contest IS 'Contests by payers, at most one for each payment.';
COMMENT ON COLUMN escrow_contest.signature IS 'the payer''s signature';
COMMENT ON COLUMN escrow_contest.made_at IS 'Unix seconds of the chain';
COMMENT ON COLUMN escrow_contest.is_open IS 'whether it has no answer yet';
COMMENT ON COLUMN escrow_contest.next_attempt_at IS 'when another process may answer it';
COMMENT ON COLUMN escrow_contest.owner IS
  'the process that is answering it (api/platform/db/presence.ts), or null';

CREATE TABLE escrow_contest_answer (
  payment bytea PRIMARY KEY REFERENCES escrow_contest,
  decision text NOT NULL CHECK (decision IN ('release', 'refund')),
  rule text NOT NULL,
  record bytea NOT NULL CHECK (length(record) = 32),
  document text NOT NULL
);
SELECT make_permanent('escrow_contest_answer');
CREATE TRIGGER queue AFTER INSERT ON escrow_contest_answer FOR EACH ROW EXECUTE FUNCTION queue_payment('contest_answer');
GRANT SELECT, INSERT ON escrow_contest_answer TO trust_api;

COMMENT ON TABLE escrow_contest_answer IS 'Signed answers to contests. Permanent.';
COMMENT ON COLUMN escrow_contest_answer.rule IS 'name of the rule that decided';
COMMENT ON COLUMN escrow_contest_answer.record IS 'hash of the record';
COMMENT ON COLUMN escrow_contest_answer.document IS 'the signed record, byte for byte';
