-- What is published about certificates in the registries of ERC-8004: one row for each certificate and registry.
CREATE TABLE publication (
  certificate text NOT NULL CHECK (certificate ~ '^[0-9a-f]{16}$'),
  registry text NOT NULL CHECK (registry IN ('reputation', 'validation')),
  chain int NOT NULL,
  contract bytea NOT NULL CHECK (length(contract) = 20),
  agent numeric(78) NOT NULL,
  request bytea CHECK (length(request) = 32),
  from_block bigint NOT NULL,
  state text NOT NULL DEFAULT 'ordered' CHECK (state IN
    ('ordered', 'sending', 'mined', 'published', 'withdrawing', 'withdrawal_mined', 'withdrawn', 'refused', 'failed')),
  attempt int NOT NULL DEFAULT 0,
  reason text,
  publisher bytea CHECK (length(publisher) = 20),
  feedback_index numeric(20),
  tx bytea CHECK (length(tx) = 32),
  withdrawal_tx bytea CHECK (length(withdrawal_tx) = 32),
  block_number bigint,
  block_hash bytea CHECK (length(block_hash) = 32),
  charged bigint NOT NULL DEFAULT 0,
  charged_on date,
  ordered_at timestamptz NOT NULL DEFAULT now(),
  look_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (certificate, registry),
  CHECK ((registry = 'validation') = (request IS NOT NULL)),
  CHECK (state NOT IN ('mined', 'withdrawal_mined') OR (block_number IS NOT NULL AND block_hash IS NOT NULL)),
  CHECK (state NOT IN ('refused', 'failed', 'withdrawing', 'withdrawn') OR reason IS NOT NULL)
);
--> statement-breakpoint
CREATE INDEX publication_due ON publication (look_at) WHERE state NOT IN ('published', 'withdrawn', 'refused', 'failed');
--> statement-breakpoint
CREATE INDEX publication_charged ON publication (charged_on) WHERE charged_on IS NOT NULL;
--> statement-breakpoint
GRANT SELECT, INSERT, UPDATE ON publication TO trust_api;
--> statement-breakpoint
-- The documents that they name, byte for byte.
CREATE TABLE certificate_credential (
  certificate text PRIMARY KEY CHECK (certificate ~ '^[0-9a-f]{16}$'),
  document text NOT NULL
);
--> statement-breakpoint
CREATE TRIGGER permanent BEFORE UPDATE OR DELETE ON certificate_credential FOR EACH ROW EXECUTE FUNCTION refuse_change();
--> statement-breakpoint
CREATE TRIGGER permanent_truncate BEFORE TRUNCATE ON certificate_credential
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
--> statement-breakpoint
ALTER TABLE certificate_credential ENABLE ALWAYS TRIGGER permanent;
--> statement-breakpoint
ALTER TABLE certificate_credential ENABLE ALWAYS TRIGGER permanent_truncate;
--> statement-breakpoint
GRANT SELECT, INSERT ON certificate_credential TO trust_api;
