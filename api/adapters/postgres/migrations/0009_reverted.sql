ALTER TABLE payment DROP CONSTRAINT payment_reason_check,
  ADD CONSTRAINT payment_reason_check CHECK (reason IN ('refused', 'expired', 'burnt', 'reverted', 'reversed', 'bait')) NOT VALID;
--> statement-breakpoint
ALTER TABLE payment VALIDATE CONSTRAINT payment_reason_check;
