-- Orders of a behavioral test whose answers get lost on purpose: api/certification/retry/. `sender` is SHA-256 of the
-- session and the address that the payment came from.
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
--> statement-breakpoint
CREATE INDEX lost_order_nonce ON lost_order (nonce) WHERE nonce IS NOT NULL;
--> statement-breakpoint
GRANT SELECT, INSERT, UPDATE ON lost_order TO trust_api;
