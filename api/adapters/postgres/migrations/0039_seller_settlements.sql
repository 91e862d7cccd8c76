-- What the chain showed of an exam's payments at its end (docs/seller-exam.md#the-record).
CREATE TABLE seller_exam_settlement (
  exam text NOT NULL REFERENCES seller_exam_result (exam),
  nonce bytea NOT NULL CHECK (length(nonce) = 32),
  tx bytea NOT NULL CHECK (length(tx) = 32),
  block_number bigint NOT NULL,
  payer bytea NOT NULL CHECK (length(payer) = 20),
  pay_to bytea NOT NULL CHECK (length(pay_to) = 20),
  value numeric(78) NOT NULL,
  PRIMARY KEY (exam, nonce)
);
--> statement-breakpoint
CREATE TRIGGER permanent BEFORE UPDATE OR DELETE ON seller_exam_settlement FOR EACH ROW EXECUTE FUNCTION refuse_change();
--> statement-breakpoint
CREATE TRIGGER permanent_truncate BEFORE TRUNCATE ON seller_exam_settlement FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
--> statement-breakpoint
ALTER TABLE seller_exam_settlement ENABLE ALWAYS TRIGGER permanent;
--> statement-breakpoint
ALTER TABLE seller_exam_settlement ENABLE ALWAYS TRIGGER permanent_truncate;
--> statement-breakpoint
GRANT SELECT, INSERT ON seller_exam_settlement TO trust_api;
