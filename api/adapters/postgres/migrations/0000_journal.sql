DO $$ BEGIN
  CREATE ROLE trust_api NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
--> statement-breakpoint
CREATE TABLE payment (
  chain int NOT NULL,
  asset bytea NOT NULL CHECK (length(asset) = 20),
  payer bytea NOT NULL CHECK (length(payer) = 20),
  nonce bytea NOT NULL CHECK (length(nonce) = 32),
  payment_id text,
  digest bytea NOT NULL,
  signature_sha256 bytea NOT NULL,
  sealed bytea,
  valid_after numeric(78) NOT NULL,
  valid_before numeric(78) NOT NULL,
  route text NOT NULL,
  fingerprint bytea NOT NULL,
  input jsonb NOT NULL,
  pay_to bytea NOT NULL CHECK (length(pay_to) = 20),
  value numeric(78) NOT NULL,
  version text NOT NULL CHECK (version IN ('v1', 'v2')),
  received_at timestamptz NOT NULL,
  head_block bigint NOT NULL,
  state text NOT NULL CHECK (state IN ('received', 'settling', 'settled', 'fulfilled', 'void')),
  reason text CHECK (reason IN ('refused', 'expired', 'burnt', 'reversed', 'bait')),
  lease_token uuid,
  lease_until timestamptz NOT NULL DEFAULT '-infinity',
  takes int NOT NULL DEFAULT 0,
  failures int NOT NULL DEFAULT 0,
  look_at timestamptz NOT NULL DEFAULT now(),
  tx bytea,
  block_number bigint,
  block_hash bytea,
  log_index int,
  final_at timestamptz,
  status smallint,
  response bytea CHECK (length(response) <= 262144),
  location text,
  PRIMARY KEY (chain, asset, payer, nonce),
  CHECK (state NOT IN ('settled', 'fulfilled') OR tx IS NOT NULL OR reason = 'bait'),
  CHECK (state <> 'fulfilled' OR response IS NOT NULL),
  CHECK (state <> 'void' OR reason IS NOT NULL)
);
--> statement-breakpoint
CREATE UNIQUE INDEX payment_id_live ON payment (payer, payment_id) WHERE payment_id IS NOT NULL AND state <> 'void';
--> statement-breakpoint
CREATE INDEX payment_todo ON payment (look_at) WHERE state IN ('settling', 'settled') OR (state = 'fulfilled' AND final_at IS NULL);
--> statement-breakpoint
CREATE INDEX payment_received ON payment (received_at) WHERE state = 'received';
--> statement-breakpoint
CREATE INDEX payment_tx ON payment (tx) WHERE tx IS NOT NULL;
--> statement-breakpoint
CREATE TABLE settlement_mark (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  chain int NOT NULL,
  asset bytea NOT NULL,
  payer bytea NOT NULL,
  nonce bytea NOT NULL,
  kind text NOT NULL CHECK (kind IN ('moved', 'reversed')),
  tx bytea,
  block_number bigint,
  at timestamptz NOT NULL DEFAULT now(),
  CHECK ((kind = 'moved') = (tx IS NOT NULL AND block_number IS NOT NULL))
);
--> statement-breakpoint
CREATE INDEX settlement_mark_payment ON settlement_mark (payer, nonce, chain, asset);
--> statement-breakpoint
CREATE TABLE certificate (
  id text PRIMARY KEY CHECK (id ~ '^[0-9a-f]{16}$'),
  product text NOT NULL,
  test_version int NOT NULL,
  result text NOT NULL CHECK (result IN ('pass', 'fail')),
  level text NOT NULL,
  wallet bytea NOT NULL CHECK (length(wallet) = 20),
  checks jsonb NOT NULL,
  detected jsonb NOT NULL,
  issued_at timestamptz NOT NULL,
  valid_until timestamptz NOT NULL,
  chain int NOT NULL,
  asset bytea NOT NULL,
  nonce bytea NOT NULL,
  tx bytea NOT NULL,
  block_number bigint NOT NULL,
  amount numeric(78) NOT NULL,
  pay_to bytea NOT NULL
);
--> statement-breakpoint
CREATE INDEX certificate_wallet ON certificate (wallet, issued_at DESC);
--> statement-breakpoint
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
--> statement-breakpoint
CREATE TRIGGER permanent BEFORE UPDATE OR DELETE ON certificate FOR EACH ROW EXECUTE FUNCTION refuse_change();
--> statement-breakpoint
CREATE TRIGGER permanent_truncate BEFORE TRUNCATE ON certificate FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
--> statement-breakpoint
CREATE TRIGGER permanent BEFORE UPDATE OR DELETE ON settlement_mark FOR EACH ROW EXECUTE FUNCTION refuse_change();
--> statement-breakpoint
CREATE TRIGGER permanent_truncate BEFORE TRUNCATE ON settlement_mark FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
--> statement-breakpoint
ALTER TABLE certificate ENABLE ALWAYS TRIGGER permanent;
--> statement-breakpoint
ALTER TABLE certificate ENABLE ALWAYS TRIGGER permanent_truncate;
--> statement-breakpoint
ALTER TABLE settlement_mark ENABLE ALWAYS TRIGGER permanent;
--> statement-breakpoint
ALTER TABLE settlement_mark ENABLE ALWAYS TRIGGER permanent_truncate;
--> statement-breakpoint
CREATE TABLE relay (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  chain int NOT NULL,
  sender bytea NOT NULL CHECK (length(sender) = 20),
  nonce bigint NOT NULL,
  hashes bytea[] NOT NULL,
  raw bytea NOT NULL,
  request jsonb NOT NULL,
  state text NOT NULL DEFAULT 'sent' CHECK (state IN ('sent', 'final', 'lost')),
  sent_at timestamptz NOT NULL DEFAULT now(),
  created_at timestamptz NOT NULL DEFAULT now()
);
--> statement-breakpoint
CREATE UNIQUE INDEX relay_nonce ON relay (chain, sender, nonce) WHERE state = 'sent';
--> statement-breakpoint
GRANT USAGE ON SCHEMA public TO trust_api;
--> statement-breakpoint
GRANT SELECT, INSERT, UPDATE, DELETE ON payment, relay TO trust_api;
--> statement-breakpoint
GRANT SELECT, INSERT ON certificate, settlement_mark TO trust_api;
--> statement-breakpoint
CREATE SCHEMA IF NOT EXISTS live;
--> statement-breakpoint
GRANT USAGE ON SCHEMA live TO trust_api;
--> statement-breakpoint
ALTER DEFAULT PRIVILEGES IN SCHEMA live GRANT SELECT ON TABLES TO trust_api;
