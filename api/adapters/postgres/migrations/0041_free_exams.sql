-- An exam free of charge, once, for one that was corrected (docs/seller-exam.md#corrections).
CREATE TABLE seller_exam_grant (
  exam text PRIMARY KEY REFERENCES seller_exam_correction (exam),
  -- Of what the seller is told. Another one may take its place until it is used.
  token_sha256 bytea NOT NULL CHECK (length(token_sha256) = 32),
  at timestamptz NOT NULL DEFAULT now()
);
--> statement-breakpoint
ALTER TABLE seller_exam ADD COLUMN again_of text UNIQUE REFERENCES seller_exam_grant (exam);
--> statement-breakpoint
GRANT SELECT, INSERT ON seller_exam_grant TO trust_api;
--> statement-breakpoint
GRANT UPDATE (token_sha256) ON seller_exam_grant TO trust_api;
