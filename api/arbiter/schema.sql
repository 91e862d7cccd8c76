CREATE TABLE verdict (
  id text PRIMARY KEY CHECK (id ~ '^[0-9a-f]{32}$'),
  supersedes text UNIQUE REFERENCES verdict (id),
  category text NOT NULL,
  outcome text NOT NULL CHECK (outcome IN ('release', 'refund', 'escalate')),
  request jsonb NOT NULL,
  document text NOT NULL,
  sha256 text NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  issued_at timestamptz NOT NULL
);
-- The list of verdicts is read newest first.
CREATE INDEX verdict_newest ON verdict (issued_at DESC, id DESC);
SELECT make_permanent('verdict');
GRANT SELECT, INSERT ON verdict TO trust_api;

COMMENT ON TABLE verdict IS 'Signed verdicts of the arbiter and their corrections (docs/arbiter.md). Permanent.';
COMMENT ON COLUMN verdict.supersedes IS 'the verdict that this one corrects; null for an original verdict';
COMMENT ON COLUMN verdict.request IS 'the request that was decided';
COMMENT ON COLUMN verdict.document IS 'the signed document, byte for byte';
COMMENT ON COLUMN verdict.sha256 IS 'SHA-256 of the document';

CREATE FUNCTION queue_verdict() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log_pending (type, ref)
    VALUES (CASE WHEN NEW.supersedes IS NULL THEN 'verdict' ELSE 'correction' END, NEW.id) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION queue_verdict IS 'Queues a verdict or a correction for the log.';
CREATE TRIGGER queue AFTER INSERT ON verdict FOR EACH ROW EXECUTE FUNCTION queue_verdict();

CREATE TABLE verdict_transfer (
  network text NOT NULL,
  tx bytea NOT NULL CHECK (length(tx) = 32),
  log_index int NOT NULL CHECK (log_index >= 0),
  -- No foreign key, because TRUNCATE would fail on it before reaching the trigger that rejects it.
  verdict text NOT NULL CHECK (verdict ~ '^[0-9a-f]{32}$'),
  PRIMARY KEY (network, tx, log_index)
);
SELECT make_permanent('verdict_transfer');
GRANT SELECT, INSERT ON verdict_transfer TO trust_api;

COMMENT ON TABLE verdict_transfer IS
  'Transfers that a verdict has decided. Only a correction of that verdict may decide the same transfer again. Permanent.';
COMMENT ON COLUMN verdict_transfer.network IS 'CAIP-2 id of the chain';
COMMENT ON COLUMN verdict_transfer.verdict IS 'id of the original verdict, inserted in the same transaction';

CREATE FUNCTION count_verdict() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO counter_change (name, part, count) VALUES ('verdict', NEW.outcome, 1);
  RETURN NULL;
END $$;
COMMENT ON FUNCTION count_verdict IS 'Counts a verdict or a correction by its outcome.';
CREATE TRIGGER counted AFTER INSERT ON verdict FOR EACH ROW EXECUTE FUNCTION count_verdict();
