CREATE SEQUENCE payment_entry;
--> statement-breakpoint
GRANT USAGE ON SEQUENCE payment_entry TO trust_api;
--> statement-breakpoint
-- Orders a payer's payments in flight.
ALTER TABLE payment ADD COLUMN entered bigint NOT NULL DEFAULT 0;
--> statement-breakpoint
-- Half as large as a tree of addresses: every refused payment leaves an entry for a while.
CREATE INDEX payment_in_flight ON payment USING hash (payer) WHERE state IN ('received', 'settling');
--> statement-breakpoint
-- One payer's payments enter one after the other: each sees those before it. Null if too many are in flight.
CREATE FUNCTION enter_payment(entering bytea, most int) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(3009, hashtext(encode(entering, 'hex')));
  IF (SELECT count(*) FROM payment WHERE payer = entering
      AND (state = 'settling' OR (state = 'received' AND lease_until > now()))) >= most THEN
    RETURN NULL;
  END IF;
  RETURN nextval('payment_entry');
END $$;
