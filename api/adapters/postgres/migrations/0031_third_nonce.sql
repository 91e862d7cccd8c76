-- A PASS of the retry safety test rests on three payments: the entry, the lost order, and the plain one. A FAIL rests on
-- the first two.
ALTER TABLE certificate ADD COLUMN third_nonce bytea CHECK (length(third_nonce) = 32);
--> statement-breakpoint
CREATE OR REPLACE FUNCTION queue_certificate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log_pending (type, ref) VALUES ('certificate', NEW.id) ON CONFLICT DO NOTHING;
  -- A payment may be reversed before the certificate that names it is issued.
  IF EXISTS (SELECT FROM settlement_mark WHERE kind = 'reversed' AND payer = NEW.wallet
      AND nonce IN (NEW.nonce, NEW.also_nonce, NEW.third_nonce) AND chain = NEW.chain AND asset = NEW.asset) THEN
    INSERT INTO log_pending (type, ref) VALUES ('reversal', NEW.id) ON CONFLICT DO NOTHING;
  END IF;
  RETURN NULL;
END $$;
--> statement-breakpoint
CREATE OR REPLACE FUNCTION queue_reversals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log_pending (type, ref)
    SELECT 'reversal', id FROM certificate
    WHERE wallet = NEW.payer AND NEW.nonce IN (nonce, also_nonce, third_nonce) AND chain = NEW.chain AND asset = NEW.asset
      AND NOT EXISTS (SELECT FROM log_entry WHERE type = 'reversal' AND ref = certificate.id)
    ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
