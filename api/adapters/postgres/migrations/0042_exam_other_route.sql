-- Another route of the seller, which the buyer of an exam names (docs/seller-exam.md).
ALTER TABLE seller_exam ADD COLUMN other text;
