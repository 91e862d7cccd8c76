CREATE TABLE cafe_receipt (
  id text PRIMARY KEY CHECK (id ~ '^[0-9a-f]{16}$'),
  item text NOT NULL,
  payer bytea NOT NULL CHECK (length(payer) = 20),
  document text NOT NULL,
  served_at timestamptz NOT NULL DEFAULT now()
);
--> statement-breakpoint
CREATE TABLE cafe_round (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  receipt text NOT NULL UNIQUE REFERENCES cafe_receipt (id),
  payer bytea NOT NULL CHECK (length(payer) = 20),
  nickname text NOT NULL,
  receipts_left int NOT NULL CHECK (receipts_left BETWEEN 0 AND 10)
);
--> statement-breakpoint
CREATE INDEX cafe_round_open ON cafe_round (id) WHERE receipts_left > 0;
--> statement-breakpoint
GRANT SELECT, INSERT ON cafe_receipt TO trust_api;
--> statement-breakpoint
GRANT SELECT, INSERT, UPDATE ON cafe_round TO trust_api;
