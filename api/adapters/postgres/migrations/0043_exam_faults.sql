-- Exams that something of ours ended (docs/seller-exam.md#money): their buyers are paid back, and those that were free of
-- charge may be taken again.
ALTER TABLE seller_exam_result ADD COLUMN is_our_fault boolean NOT NULL DEFAULT false,
  ADD CHECK (outcome = 'interrupted' OR NOT is_our_fault);
--> statement-breakpoint
-- What a buyer was paid back, in a block that is final.
CREATE TABLE seller_exam_refund (
  exam text PRIMARY KEY REFERENCES seller_exam_result (exam),
  tx bytea NOT NULL CHECK (length(tx) = 32),
  block_number bigint NOT NULL,
  at timestamptz NOT NULL DEFAULT now()
);
--> statement-breakpoint
CREATE TRIGGER permanent BEFORE UPDATE OR DELETE ON seller_exam_refund FOR EACH ROW EXECUTE FUNCTION refuse_change();
--> statement-breakpoint
CREATE TRIGGER permanent_truncate BEFORE TRUNCATE ON seller_exam_refund FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
--> statement-breakpoint
ALTER TABLE seller_exam_refund ENABLE ALWAYS TRIGGER permanent;
--> statement-breakpoint
ALTER TABLE seller_exam_refund ENABLE ALWAYS TRIGGER permanent_truncate;
--> statement-breakpoint
GRANT SELECT, INSERT ON seller_exam_refund TO trust_api;
--> statement-breakpoint
-- The id, which follows from the corrected one and a count, still keeps one from being taken twice.
ALTER TABLE seller_exam DROP CONSTRAINT seller_exam_again_of_key;
--> statement-breakpoint
CREATE INDEX seller_exam_again_of ON seller_exam (again_of) WHERE again_of IS NOT NULL;
