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
