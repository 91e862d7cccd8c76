-- Exams of sellers (docs/seller-exam.md): what was ordered, and what became of it. Rows of both are permanent.
CREATE TABLE seller_exam (
  id text PRIMARY KEY CHECK (id ~ '^[0-9a-f]{32}$'),
  origin text NOT NULL,
  url text NOT NULL,
  method text NOT NULL,
  body text,
  content_type text NOT NULL,
  -- What the seller quoted when the exam was ordered: nothing else is ever signed.
  pay_to bytea NOT NULL CHECK (length(pay_to) = 20),
  amount numeric(78) NOT NULL CHECK (amount > 0),
  mode text NOT NULL CHECK (mode IN ('paid', 'passive')),
  consent jsonb,
  chain int NOT NULL,
  asset bytea NOT NULL CHECK (length(asset) = 20),
  payer bytea NOT NULL CHECK (length(payer) = 20),
  nonce bytea NOT NULL CHECK (length(nonce) = 32),
  tx bytea NOT NULL CHECK (length(tx) = 32),
  block_number bigint NOT NULL,
  ordered_at timestamptz NOT NULL,
  CHECK ((mode = 'paid') = (consent IS NOT NULL))
);
--> statement-breakpoint
-- JSON as text: a seller's words may hold what jsonb refuses.
CREATE TABLE seller_exam_result (
  exam text PRIMARY KEY REFERENCES seller_exam (id),
  origin text NOT NULL,
  pay_to bytea NOT NULL CHECK (length(pay_to) = 20),
  outcome text NOT NULL CHECK (outcome IN ('complete', 'interrupted')),
  level text CHECK (level IN ('full', 'safe')),
  -- Whether it may be found by its origin and payee; by its id it always is.
  is_public boolean NOT NULL,
  note text,
  checks text NOT NULL,
  evidence text NOT NULL CHECK (length(evidence) <= 8388608),
  evidence_sha256 bytea NOT NULL CHECK (length(evidence_sha256) = 32),
  spent numeric(78),
  runs int NOT NULL,
  began_at timestamptz NOT NULL,
  ended_at timestamptz NOT NULL,
  valid_until timestamptz,
  CHECK (level IS NULL OR outcome = 'complete'),
  CHECK ((valid_until IS NOT NULL) = is_public),
  CHECK (outcome = 'complete' OR NOT is_public)
);
--> statement-breakpoint
CREATE INDEX seller_exam_result_origin ON seller_exam_result (origin, ended_at DESC) WHERE is_public;
--> statement-breakpoint
CREATE INDEX seller_exam_result_payee ON seller_exam_result (pay_to, ended_at DESC) WHERE is_public;
--> statement-breakpoint
CREATE INDEX seller_exam_result_newest ON seller_exam_result (ended_at DESC, exam DESC) WHERE is_public;
--> statement-breakpoint
CREATE INDEX seller_exam_result_ended ON seller_exam_result (origin, ended_at DESC);
--> statement-breakpoint
-- A result that turned out wrong stays as it is; this says so beside it.
CREATE TABLE seller_exam_correction (
  exam text PRIMARY KEY REFERENCES seller_exam_result (exam),
  reason text NOT NULL,
  at timestamptz NOT NULL DEFAULT now()
);
--> statement-breakpoint
-- Every authorization of an exam, written before it is signed. `run` is the lease under which it was.
CREATE TABLE seller_exam_signature (
  nonce bytea PRIMARY KEY CHECK (length(nonce) = 32),
  exam text NOT NULL REFERENCES seller_exam (id),
  run uuid NOT NULL,
  pay_to bytea NOT NULL CHECK (length(pay_to) = 20),
  value numeric(78) NOT NULL,
  valid_after numeric(78) NOT NULL,
  valid_before numeric(78) NOT NULL,
  -- What its settlement would take from the account.
  cost numeric(78) NOT NULL,
  signed_at timestamptz NOT NULL DEFAULT now()
);
--> statement-breakpoint
CREATE INDEX seller_exam_signature_exam ON seller_exam_signature (exam);
--> statement-breakpoint
CREATE INDEX seller_exam_signature_cost ON seller_exam_signature (signed_at) WHERE cost > 0;
--> statement-breakpoint
-- Exams without a result yet.
CREATE TABLE seller_exam_work (
  exam text PRIMARY KEY REFERENCES seller_exam (id),
  origin text NOT NULL,
  ordered_at timestamptz NOT NULL,
  due_at timestamptz NOT NULL DEFAULT now(),
  lease_token uuid,
  lease_until timestamptz NOT NULL DEFAULT '-infinity',
  takes int NOT NULL DEFAULT 0
);
--> statement-breakpoint
CREATE INDEX seller_exam_work_origin ON seller_exam_work (origin);
--> statement-breakpoint
-- What a seller answered before an exam of it was ordered. `request` is SHA-256 of what it was asked.
CREATE TABLE seller_probe (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  origin text NOT NULL,
  request bytea NOT NULL CHECK (length(request) = 32),
  at timestamptz NOT NULL DEFAULT now(),
  -- Null while the seller is asked.
  found jsonb
);
--> statement-breakpoint
CREATE INDEX seller_probe_request ON seller_probe (request, at DESC);
--> statement-breakpoint
CREATE INDEX seller_probe_origin ON seller_probe (origin, at DESC);
--> statement-breakpoint
DO $$
DECLARE
  kept text;
BEGIN
  FOREACH kept IN ARRAY ARRAY['seller_exam', 'seller_exam_result', 'seller_exam_correction', 'seller_exam_signature'] LOOP
    EXECUTE format('CREATE TRIGGER permanent BEFORE UPDATE OR DELETE ON %I FOR EACH ROW EXECUTE FUNCTION refuse_change()', kept);
    EXECUTE format('CREATE TRIGGER permanent_truncate BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', kept);
    EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER permanent', kept);
    EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER permanent_truncate', kept);
  END LOOP;
END $$;
--> statement-breakpoint
GRANT SELECT, INSERT ON seller_exam, seller_exam_result, seller_exam_correction, seller_exam_signature TO trust_api;
--> statement-breakpoint
GRANT SELECT, INSERT, UPDATE, DELETE ON seller_exam_work, seller_probe TO trust_api;
