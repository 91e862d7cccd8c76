CREATE TABLE sign_in (
  nonce bytea PRIMARY KEY CHECK (length(nonce) = 34)
);
GRANT SELECT, INSERT, DELETE ON sign_in TO trust_api;

COMMENT ON TABLE sign_in IS 'Nonces of sign-ins that were used (docs/purchases.md).';
COMMENT ON COLUMN sign_in.nonce IS
  'time of issue in milliseconds since 1970, then random bytes, then an authentication code of both';
