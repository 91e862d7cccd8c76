CREATE TABLE log (
  generation int PRIMARY KEY CHECK (generation > 0),
  origin text NOT NULL UNIQUE,
  vkey text NOT NULL,
  started_at timestamptz NOT NULL DEFAULT now()
);
SELECT make_permanent('log');
GRANT SELECT, INSERT ON log TO trust_api;

COMMENT ON TABLE log IS 'Transparency logs (docs/log.md). A generation is a separate log with its own origin and key.';
COMMENT ON COLUMN log.origin IS 'first line of its checkpoints';
COMMENT ON COLUMN log.vkey IS 'verifier key of its checkpoints, in the signed-note format';

CREATE TABLE log_pending (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  type text NOT NULL,
  ref text NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  members jsonb,
  UNIQUE (type, ref)
);
GRANT SELECT, INSERT, DELETE ON log_pending TO trust_api;

COMMENT ON TABLE log_pending IS
  'Records waiting for an index in the log. A trigger of the record''s table adds the row in the same transaction. These triggers do not fire in a replica session, where the row is replicated along with its record.';
COMMENT ON COLUMN log_pending.type IS 'type of the entry';
COMMENT ON COLUMN log_pending.ref IS 'id of the record';
COMMENT ON COLUMN log_pending.members IS
  'members of an announcement; null for every other type, whose members are read from the record';

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
SELECT make_permanent('log_entry');
GRANT SELECT, INSERT ON log_entry TO trust_api;

COMMENT ON TABLE log_entry IS 'Leaves of the log.';
COMMENT ON COLUMN log_entry.idx IS 'index of the leaf, counted from 0';
COMMENT ON COLUMN log_entry.ref IS 'id of the record';
COMMENT ON COLUMN log_entry.entry IS 'the logged bytes: canonical JSON (RFC 8785)';

CREATE TABLE log_tile (
  generation int NOT NULL,
  level smallint NOT NULL CHECK (level BETWEEN 0 AND 63),
  n bigint NOT NULL CHECK (n >= 0),
  hashes bytea NOT NULL CHECK (length(hashes) BETWEEN 32 AND 8192 AND length(hashes) % 32 = 0),
  PRIMARY KEY (generation, level, n)
);
-- Hashes cannot be compressed.
ALTER TABLE log_tile ALTER COLUMN hashes SET STORAGE EXTERNAL;

CREATE FUNCTION refuse_other_hashes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.generation, NEW.level, NEW.n) IS DISTINCT FROM (OLD.generation, OLD.level, OLD.n)
    OR substr(NEW.hashes, 1, length(OLD.hashes)) <> OLD.hashes THEN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
COMMENT ON FUNCTION refuse_other_hashes IS 'Lets a tile grow at its end and rejects every other change.';

CREATE TRIGGER growing BEFORE UPDATE ON log_tile FOR EACH ROW EXECUTE FUNCTION refuse_other_hashes();
ALTER TABLE log_tile ENABLE ALWAYS TRIGGER growing;
SELECT make_permanent('log_tile', 'DELETE');
GRANT SELECT, INSERT, UPDATE ON log_tile TO trust_api;

COMMENT ON TABLE log_tile IS 'Merkle tree tiles of the log, as C2SP tlog-tiles defines them.';
COMMENT ON COLUMN log_tile.n IS 'index of the tile within its level';
COMMENT ON COLUMN log_tile.hashes IS 'up to 256 hashes of 32 bytes; every partial tile is a prefix of it';

CREATE TABLE log_checkpoint (
  generation int NOT NULL,
  size bigint NOT NULL CHECK (size >= 0),
  root bytea NOT NULL CHECK (length(root) = 32),
  note text NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (generation, size)
);
SELECT make_permanent('log_checkpoint');
GRANT SELECT, INSERT ON log_checkpoint TO trust_api;

COMMENT ON TABLE log_checkpoint IS 'Checkpoints that the log''s key has signed.';
COMMENT ON COLUMN log_checkpoint.size IS 'number of entries';
COMMENT ON COLUMN log_checkpoint.note IS 'the signed note, without cosignatures';

CREATE TABLE log_served (
  generation int PRIMARY KEY,
  size bigint NOT NULL CHECK (size >= 0)
);

CREATE FUNCTION refuse_smaller() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.generation <> OLD.generation OR NEW.size < OLD.size THEN
    RAISE EXCEPTION '% only grows', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
COMMENT ON FUNCTION refuse_smaller IS 'Rejects a size that is smaller than the stored one.';

CREATE TRIGGER growing BEFORE UPDATE ON log_served FOR EACH ROW EXECUTE FUNCTION refuse_smaller();
GRANT SELECT, INSERT, UPDATE ON log_served TO trust_api;

COMMENT ON TABLE log_served IS
  'Size of the largest checkpoint that readers were served. No process serves a smaller one afterward.';

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
GRANT SELECT, INSERT, DELETE ON log_cosignature TO trust_api;

COMMENT ON TABLE log_cosignature IS 'Verified cosignatures of witnesses.';
COMMENT ON COLUMN log_cosignature.size IS 'size of the cosigned checkpoint';
COMMENT ON COLUMN log_cosignature.line IS 'the signature line with its newline';
COMMENT ON COLUMN log_cosignature.timestamp IS 'Unix seconds, as the witness signed them';

CREATE TABLE log_witness (
  generation int NOT NULL,
  vkey text NOT NULL,
  size bigint NOT NULL DEFAULT 0,
  due_at timestamptz NOT NULL DEFAULT '-infinity',
  asked_at timestamptz,
  owner int,
  cosigned_size bigint,
  cosigned_seconds bigint,
  failures int NOT NULL DEFAULT 0,
  error text,
  error_at timestamptz,
  danger text,
  PRIMARY KEY (generation, vkey)
);
GRANT SELECT, INSERT, UPDATE ON log_witness TO trust_api;

COMMENT ON TABLE log_witness IS 'The state of each configured witness, shared by all processes.';
COMMENT ON COLUMN log_witness.vkey IS 'verifier key of the witness';
COMMENT ON COLUMN log_witness.size IS 'number of entries that the witness is assumed to have; its responses correct it';
COMMENT ON COLUMN log_witness.due_at IS 'time of the next request to the witness; the process that moves it sends the request';
COMMENT ON COLUMN log_witness.owner IS
  'the process with a request to it (api/platform/db/presence.ts), or null';
COMMENT ON COLUMN log_witness.cosigned_size IS 'size of the newest checkpoint that it cosigned';
COMMENT ON COLUMN log_witness.cosigned_seconds IS 'Unix seconds of that cosignature';
COMMENT ON COLUMN log_witness.failures IS 'consecutive failures';
COMMENT ON COLUMN log_witness.error IS 'why its last response did not count; null if it did';
COMMENT ON COLUMN log_witness.danger IS
  'why the log must not sign anything until this witness cosigns again';

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
GRANT SELECT, INSERT, UPDATE ON log_anchor TO trust_api;

COMMENT ON TABLE log_anchor IS 'Checkpoints whose size and root are on a chain, or soon will be.';
COMMENT ON COLUMN log_anchor.chain IS 'EIP-155 id of the chain that tx and block belong to';
COMMENT ON COLUMN log_anchor.tx IS 'null until it is mined, as is block';
COMMENT ON COLUMN log_anchor.state IS '"sending", "mined", "final", or "failed" if the chain rejects it';
COMMENT ON COLUMN log_anchor.at IS 'when the anchor was begun';

CREATE TABLE log_vouched (
  generation int PRIMARY KEY,
  server text NOT NULL,
  at timestamptz NOT NULL DEFAULT now()
);
GRANT SELECT, INSERT, UPDATE ON log_vouched TO trust_api;

COMMENT ON TABLE log_vouched IS
  'The run of the database server in which the log was last checked and found complete. A restart or a restore is a different run, and the log is checked again.';
COMMENT ON COLUMN log_vouched.server IS 'start time of the server and object ids of the database and of log_checkpoint';
