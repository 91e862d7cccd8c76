-- When the state last changed; since when a payment without progress is set aside; when an alert has named it.
ALTER TABLE payment ADD COLUMN moved_at timestamptz NOT NULL DEFAULT now(), ADD COLUMN parked_at timestamptz, ADD COLUMN named_at timestamptz;
--> statement-breakpoint
DROP INDEX payment_todo;
--> statement-breakpoint
CREATE INDEX payment_todo ON payment (look_at) INCLUDE (state)
  WHERE (state IN ('settling', 'settled') OR (state = 'fulfilled' AND final_at IS NULL)) AND reason IS NULL AND parked_at IS NULL;
--> statement-breakpoint
CREATE INDEX payment_parked ON payment (look_at)
  WHERE (state IN ('settling', 'settled') OR (state = 'fulfilled' AND final_at IS NULL)) AND reason IS NULL AND parked_at IS NOT NULL;
--> statement-breakpoint
CREATE INDEX payment_named ON payment (named_at, parked_at)
  WHERE (state IN ('settling', 'settled') OR (state = 'fulfilled' AND final_at IS NULL)) AND reason IS NULL AND parked_at IS NOT NULL;
--> statement-breakpoint
CREATE INDEX payment_unresolved ON payment (received_at) WHERE state IN ('settling', 'settled') AND parked_at IS NULL;
--> statement-breakpoint
-- What goes once its window is over. A reversal stays: a mark and a certificate refer to it.
CREATE INDEX payment_over ON payment (valid_before) WHERE state IN ('received', 'void') AND reason IS DISTINCT FROM 'reversed';
--> statement-breakpoint
DROP INDEX payment_received;
--> statement-breakpoint
-- Refused payments come and go by the million: their room is free again soon.
ALTER TABLE payment SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
--> statement-breakpoint
-- For people: what makes no progress.
CREATE VIEW parked_payment AS
  SELECT chain, '0x' || encode(payer, 'hex') AS payer, '0x' || encode(nonce, 'hex') AS nonce, route, state, failures, takes,
    received_at, moved_at, parked_at, look_at
  FROM payment
  WHERE (state IN ('settling', 'settled') OR (state = 'fulfilled' AND final_at IS NULL)) AND reason IS NULL AND parked_at IS NOT NULL;
--> statement-breakpoint
GRANT SELECT ON parked_payment TO trust_api;
