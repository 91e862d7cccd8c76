-- What finishes a payment is stored when its signature leaves, and cleared when it is void.
ALTER TABLE payment ALTER COLUMN input DROP NOT NULL;
--> statement-breakpoint
UPDATE payment SET input = NULL, details = NULL, sealed = NULL WHERE state = 'void';
--> statement-breakpoint
-- A process of the release before would settle such a row without its input.
ALTER TABLE payment ADD CONSTRAINT payment_input_kept CHECK (state IN ('received', 'void') OR input IS NOT NULL);
--> statement-breakpoint
-- Of a long identifier, its digest.
UPDATE payment SET payment_id = rtrim(translate(encode(sha256(convert_to(payment_id, 'UTF8')), 'base64'), '+/', '-_'), '=')
  WHERE length(payment_id) > 43;
