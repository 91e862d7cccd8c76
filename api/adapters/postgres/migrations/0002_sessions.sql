ALTER TABLE certificate ADD COLUMN also_nonce bytea CHECK (length(also_nonce) = 32);
--> statement-breakpoint
CREATE TABLE test_session (
  id text PRIMARY KEY CHECK (id ~ '^[0-9a-f]{16}$'),
  product text NOT NULL,
  wallet bytea NOT NULL CHECK (length(wallet) = 20),
  token_sha256 bytea NOT NULL CHECK (length(token_sha256) = 32),
  chain int NOT NULL,
  asset bytea NOT NULL,
  nonce bytea NOT NULL,
  tx bytea NOT NULL,
  block_number bigint NOT NULL,
  amount numeric(78) NOT NULL,
  pay_to bytea NOT NULL,
  version text NOT NULL CHECK (version IN ('v1', 'v2')),
  bait_first boolean NOT NULL,
  decoy bytea NOT NULL CHECK (length(decoy) = 20),
  started_at timestamptz NOT NULL,
  lapses_at timestamptz NOT NULL,
  served jsonb NOT NULL,
  control_nonce bytea,
  control_tx bytea,
  verdict text CHECK (verdict IN ('pass', 'fail')),
  verdict_at timestamptz,
  CHECK ((control_nonce IS NULL) = (control_tx IS NULL)),
  CHECK ((verdict IS NULL) = (verdict_at IS NULL))
);
--> statement-breakpoint
CREATE INDEX test_session_wallet ON test_session (wallet, product, started_at DESC);
--> statement-breakpoint
CREATE INDEX test_session_started ON test_session (started_at);
--> statement-breakpoint
CREATE TABLE published_proof (
  certificate text PRIMARY KEY,
  document jsonb NOT NULL,
  published_at timestamptz NOT NULL DEFAULT now()
);
--> statement-breakpoint
CREATE TRIGGER permanent BEFORE UPDATE OR DELETE ON published_proof FOR EACH ROW EXECUTE FUNCTION refuse_change();
--> statement-breakpoint
CREATE TRIGGER permanent_truncate BEFORE TRUNCATE ON published_proof FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
--> statement-breakpoint
ALTER TABLE published_proof ENABLE ALWAYS TRIGGER permanent;
--> statement-breakpoint
ALTER TABLE published_proof ENABLE ALWAYS TRIGGER permanent_truncate;
--> statement-breakpoint
CREATE INDEX payment_kept ON payment (valid_before) WHERE reason = 'bait' AND sealed IS NOT NULL;
--> statement-breakpoint
GRANT SELECT, INSERT, UPDATE ON test_session TO trust_api;
--> statement-breakpoint
GRANT SELECT, INSERT ON published_proof TO trust_api;
