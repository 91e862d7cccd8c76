DO $$ BEGIN
  IF to_regrole('trust_api') IS NULL THEN
    CREATE ROLE trust_api NOLOGIN;
  END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;

DO $$ BEGIN
  IF to_regrole('trust_indexer') IS NULL THEN
    CREATE ROLE trust_indexer NOLOGIN;
  END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;

GRANT USAGE ON SCHEMA public TO trust_api;
DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO trust_indexer', current_database()); END $$;

CREATE SCHEMA IF NOT EXISTS live;
GRANT USAGE ON SCHEMA live TO trust_api;
GRANT USAGE, CREATE ON SCHEMA live TO trust_indexer;
ALTER DEFAULT PRIVILEGES IN SCHEMA live GRANT SELECT ON TABLES TO trust_api;
COMMENT ON SCHEMA live IS 'Views of the index. The indexer creates them; the API reads them.';

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
COMMENT ON FUNCTION refuse_change IS 'Rejects every statement that fires it.';

CREATE FUNCTION make_permanent(kept regclass, refused text DEFAULT 'UPDATE OR DELETE') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE TRIGGER permanent BEFORE %s ON %s FOR EACH ROW EXECUTE FUNCTION refuse_change()', refused, kept);
  EXECUTE format('CREATE TRIGGER permanent_truncate BEFORE TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', kept);
  EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER permanent, ENABLE ALWAYS TRIGGER permanent_truncate', kept);
END $$;
COMMENT ON FUNCTION make_permanent IS
  'Makes a table append-only for every role, its owner included, and also in a replica session.';

CREATE FUNCTION require_rows(changed bigint, wanted bigint) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF changed <> wanted THEN
    RAISE EXCEPTION 'changed % rows of %', changed, wanted USING ERRCODE = 'no_data_found';
  END IF;
END $$;
COMMENT ON FUNCTION require_rows IS
  'Fails, which rolls back the transaction, unless a statement changed the number of rows that it had to.';

CREATE TABLE installation (
  id int PRIMARY KEY CHECK (id > 0),
  pay_to bytea NOT NULL CHECK (length(pay_to) = 20),
  network text NOT NULL,
  arbiter bytea NOT NULL CHECK (length(arbiter) = 20),
  origin text NOT NULL,
  sealing_check bytea NOT NULL CHECK (length(sealing_check) = 32),
  decoy_check bytea NOT NULL CHECK (length(decoy_check) = 32),
  reason text,
  recorded_at timestamptz NOT NULL DEFAULT now(),
  CHECK ((id = 1) = (reason IS NULL))
);
SELECT make_permanent('installation');
GRANT SELECT, INSERT ON installation TO trust_api;

COMMENT ON TABLE installation IS
  'The identity that this database was filled under. The row with the highest id applies; each later one is a deliberate change. Permanent.';
COMMENT ON COLUMN installation.pay_to IS 'PAY_TO_ADDRESS';
COMMENT ON COLUMN installation.network IS 'CAIP-2 id of the chain that real payments are on';
COMMENT ON COLUMN installation.arbiter IS 'address of ARBITER_PRIVATE_KEY';
COMMENT ON COLUMN installation.origin IS 'BASE_URL; "loopback" for every address of this machine';
COMMENT ON COLUMN installation.sealing_check IS
  'HMAC-SHA256 of a constant under SEALING_KEY: recognizes the key and reveals nothing about it';
COMMENT ON COLUMN installation.decoy_check IS 'the same under DECOY_SEED';
COMMENT ON COLUMN installation.reason IS 'why the operator changed the identity; null for the first row';

CREATE TABLE counter (
  name text NOT NULL,
  part text NOT NULL,
  count bigint NOT NULL,
  amount numeric(78) NOT NULL DEFAULT 0,
  PRIMARY KEY (name, part)
);
GRANT SELECT, INSERT, UPDATE, DELETE ON counter TO trust_api;

COMMENT ON TABLE counter IS
  'Running totals for the published statistics, so that no request counts rows. A total is this row plus its rows in counter_change.';
COMMENT ON COLUMN counter.part IS 'what is counted of name, such as one product or one day; empty: name has no parts';
COMMENT ON COLUMN counter.amount IS 'sum of the counted amounts, in atomic units; 0 for what has no amount';

CREATE TABLE counter_change (LIKE counter INCLUDING DEFAULTS);
GRANT SELECT, INSERT, UPDATE, DELETE ON counter_change TO trust_api;

COMMENT ON TABLE counter_change IS
  'Changes that are not in counter yet. Triggers only insert here, so transactions that count the same thing do not wait for each other.';

CREATE UNLOGGED TABLE request_count (
  client text PRIMARY KEY,
  used int NOT NULL,
  until timestamptz NOT NULL
);
GRANT SELECT, INSERT, UPDATE, DELETE ON request_count TO trust_api;

COMMENT ON TABLE request_count IS
  'Requests of busy clients, which all processes count together for the rate limit. Lost with a crash of the server.';
COMMENT ON COLUMN request_count.client IS 'a client address, or the /64 of an IPv6 address';
COMMENT ON COLUMN request_count.until IS 'end of the minute that used counts';
