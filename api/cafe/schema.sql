CREATE TABLE cafe_receipt (
  id text PRIMARY KEY CHECK (id ~ '^[0-9a-f]{16}$'),
  document text NOT NULL
);
GRANT SELECT, INSERT ON cafe_receipt TO trust_api;

COMMENT ON TABLE cafe_receipt IS 'Receipts of the café.';
COMMENT ON COLUMN cafe_receipt.id IS 'derived from the payment, so that a sale makes one receipt';
COMMENT ON COLUMN cafe_receipt.document IS 'the receipt as it was served';

CREATE TABLE cafe_round (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  receipt text NOT NULL UNIQUE REFERENCES cafe_receipt (id),
  payer bytea NOT NULL CHECK (length(payer) = 20),
  nickname text NOT NULL,
  receipts_left int NOT NULL CHECK (receipts_left BETWEEN 0 AND 10)
);
CREATE INDEX cafe_round_open ON cafe_round (id) WHERE receipts_left > 0;
GRANT SELECT, INSERT, UPDATE ON cafe_round TO trust_api;

COMMENT ON TABLE cafe_round IS 'Rounds bought at the café. The next receipts of other wallets name the buyer.';
COMMENT ON COLUMN cafe_round.receipt IS 'the receipt of the round';
COMMENT ON COLUMN cafe_round.nickname IS 'the buyer''s nickname, as shown on receipts';
COMMENT ON COLUMN cafe_round.receipts_left IS 'number of receipts that will still name it';
