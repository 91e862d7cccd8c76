-- The transparency log (docs/log.md). A generation is a log of its own, with its origin and its key.
CREATE TABLE log (
  generation int PRIMARY KEY CHECK (generation > 0),
  origin text NOT NULL UNIQUE,
  vkey text NOT NULL,
  started_at timestamptz NOT NULL DEFAULT now()
);
--> statement-breakpoint
-- What waits for its place in the log: rows come with their records, in the same transaction.
CREATE TABLE log_pending (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  type text NOT NULL,
  ref text NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (type, ref)
);
--> statement-breakpoint
CREATE TABLE log_entry (
  generation int NOT NULL,
  idx bigint NOT NULL CHECK (idx >= 0),
  type text NOT NULL,
  ref text NOT NULL,
  entry bytea NOT NULL CHECK (length(entry) BETWEEN 1 AND 65535),
  at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (generation, idx),
  UNIQUE (type, ref)
);
--> statement-breakpoint
-- The hashes of a full or growing tile, 32 bytes each: a partial tile is the beginning of it.
CREATE TABLE log_tile (
  generation int NOT NULL,
  level smallint NOT NULL CHECK (level BETWEEN 0 AND 63),
  n bigint NOT NULL CHECK (n >= 0),
  hashes bytea NOT NULL CHECK (length(hashes) BETWEEN 32 AND 8192 AND length(hashes) % 32 = 0),
  PRIMARY KEY (generation, level, n)
);
--> statement-breakpoint
-- Hashes cannot be compressed.
ALTER TABLE log_tile ALTER COLUMN hashes SET STORAGE EXTERNAL;
--> statement-breakpoint
CREATE TABLE log_checkpoint (
  generation int NOT NULL,
  size bigint NOT NULL CHECK (size >= 0),
  root bytea NOT NULL CHECK (length(root) = 32),
  note text NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (generation, size)
);
--> statement-breakpoint
CREATE TABLE log_cosignature (
  generation int NOT NULL,
  size bigint NOT NULL,
  key_name text NOT NULL,
  key_id bytea NOT NULL CHECK (length(key_id) = 4),
  line text NOT NULL,
  timestamp bigint NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (generation, size, key_name, key_id, timestamp)
);
--> statement-breakpoint
CREATE TABLE log_anchor (
  generation int NOT NULL,
  size bigint NOT NULL,
  root bytea NOT NULL CHECK (length(root) = 32),
  chain int NOT NULL,
  tx bytea CHECK (length(tx) = 32),
  block bigint,
  state text NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (generation, size)
);
--> statement-breakpoint
-- A tile may only grow.
CREATE FUNCTION refuse_other_hashes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.generation, NEW.level, NEW.n) IS DISTINCT FROM (OLD.generation, OLD.level, OLD.n)
    OR substr(NEW.hashes, 1, length(OLD.hashes)) <> OLD.hashes THEN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
--> statement-breakpoint
DO $$
DECLARE
  logged text;
BEGIN
  FOREACH logged IN ARRAY ARRAY['log', 'log_entry', 'log_checkpoint'] LOOP
    EXECUTE format('CREATE TRIGGER permanent BEFORE UPDATE OR DELETE ON %I FOR EACH ROW EXECUTE FUNCTION refuse_change()', logged);
  END LOOP;
  CREATE TRIGGER permanent BEFORE DELETE ON log_tile FOR EACH ROW EXECUTE FUNCTION refuse_change();
  CREATE TRIGGER growing BEFORE UPDATE ON log_tile FOR EACH ROW EXECUTE FUNCTION refuse_other_hashes();
  ALTER TABLE log_tile ENABLE ALWAYS TRIGGER growing;
  FOREACH logged IN ARRAY ARRAY['log', 'log_entry', 'log_checkpoint', 'log_tile'] LOOP
    EXECUTE format('CREATE TRIGGER permanent_truncate BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', logged);
    EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER permanent', logged);
    EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER permanent_truncate', logged);
  END LOOP;
END $$;
--> statement-breakpoint
-- A record and its place in the queue are written together. A sale never fails for what waits already.
CREATE FUNCTION queue_certificate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log_pending (type, ref) VALUES ('certificate', NEW.id) ON CONFLICT DO NOTHING;
  -- A payment may be reversed before the certificate that names it is issued.
  IF EXISTS (SELECT FROM settlement_mark WHERE kind = 'reversed' AND payer = NEW.wallet
      AND nonce IN (NEW.nonce, NEW.also_nonce) AND chain = NEW.chain AND asset = NEW.asset) THEN
    INSERT INTO log_pending (type, ref) VALUES ('reversal', NEW.id) ON CONFLICT DO NOTHING;
  END IF;
  RETURN NULL;
END $$;
--> statement-breakpoint
CREATE FUNCTION queue_reversals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log_pending (type, ref)
    SELECT 'reversal', id FROM certificate
    WHERE wallet = NEW.payer AND NEW.nonce IN (nonce, also_nonce) AND chain = NEW.chain AND asset = NEW.asset
      AND NOT EXISTS (SELECT FROM log_entry WHERE type = 'reversal' AND ref = certificate.id)
    ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
--> statement-breakpoint
CREATE FUNCTION queue_proof() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log_pending (type, ref) VALUES ('proof', NEW.certificate) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
--> statement-breakpoint
CREATE FUNCTION queue_verdict() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log_pending (type, ref)
    VALUES (CASE WHEN NEW.supersedes IS NULL THEN 'verdict' ELSE 'correction' END, NEW.id) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
--> statement-breakpoint
CREATE FUNCTION queue_payment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log_pending (type, ref) VALUES (TG_ARGV[0], '0x' || encode(NEW.payment, 'hex')) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
--> statement-breakpoint
CREATE TRIGGER queue AFTER INSERT ON certificate FOR EACH ROW EXECUTE FUNCTION queue_certificate();
--> statement-breakpoint
CREATE TRIGGER queue AFTER INSERT ON settlement_mark FOR EACH ROW WHEN (NEW.kind = 'reversed')
  EXECUTE FUNCTION queue_reversals();
--> statement-breakpoint
CREATE TRIGGER queue AFTER INSERT ON published_proof FOR EACH ROW EXECUTE FUNCTION queue_proof();
--> statement-breakpoint
CREATE TRIGGER queue AFTER INSERT ON verdict FOR EACH ROW EXECUTE FUNCTION queue_verdict();
--> statement-breakpoint
CREATE TRIGGER queue AFTER INSERT ON escrow_evaluation FOR EACH ROW EXECUTE FUNCTION queue_payment('evaluation');
--> statement-breakpoint
CREATE TRIGGER queue AFTER INSERT ON escrow_contest_answer FOR EACH ROW EXECUTE FUNCTION queue_payment('contest_answer');
--> statement-breakpoint
-- Replication must not queue what comes with its row, so these are not enabled always.
INSERT INTO log_pending (type, ref, at)
  SELECT type, ref, at FROM (
    SELECT 'certificate' AS type, id AS ref, issued_at AS at, 1 AS rank FROM certificate
    UNION ALL SELECT 'proof', certificate, published_at, 2 FROM published_proof
    UNION ALL SELECT 'reversal', c.id, min(m.at), 3 FROM settlement_mark m
      JOIN certificate c ON c.wallet = m.payer AND m.nonce IN (c.nonce, c.also_nonce) AND c.chain = m.chain AND c.asset = m.asset
      WHERE m.kind = 'reversed' GROUP BY c.id
    UNION ALL SELECT CASE WHEN supersedes IS NULL THEN 'verdict' ELSE 'correction' END, id, issued_at, 4 FROM verdict
    UNION ALL SELECT 'evaluation', '0x' || encode(payment, 'hex'), evaluated_at, 5 FROM escrow_evaluation
    UNION ALL SELECT 'contest_answer', '0x' || encode(payment, 'hex'), answered_at, 6 FROM escrow_contest_answer
  ) AS record ORDER BY at, rank, ref;
--> statement-breakpoint
GRANT SELECT, INSERT ON log, log_entry, log_checkpoint TO trust_api;
--> statement-breakpoint
GRANT SELECT, INSERT, UPDATE ON log_tile, log_anchor TO trust_api;
--> statement-breakpoint
GRANT SELECT, INSERT, DELETE ON log_pending, log_cosignature TO trust_api;
