-- Outcomes go by their value and age, and merchants take turns.
ALTER TABLE escrow_task ADD COLUMN merchant bytea CHECK (length(merchant) = 20), ADD COLUMN amount numeric(37);
--> statement-breakpoint
UPDATE escrow_task SET merchant = decode(substr(info ->> 'receiver', 3), 'hex'), amount = (info ->> 'maxAmount')::numeric;
--> statement-breakpoint
ALTER TABLE escrow_task ALTER COLUMN merchant SET NOT NULL, ALTER COLUMN amount SET NOT NULL;
--> statement-breakpoint
CREATE INDEX escrow_task_value ON escrow_task (amount DESC) WHERE state = 'open';
--> statement-breakpoint
CREATE INDEX escrow_task_due ON escrow_task (look_at) WHERE state = 'open';
--> statement-breakpoint
-- What outcomes have cost beyond their fees, by whom they were for: a merchant, or the buyers of all holds that nobody decided.
CREATE TABLE escrow_gas (
  account bytea NOT NULL CHECK (length(account) = 20),
  day date NOT NULL,
  gas bigint NOT NULL,
  PRIMARY KEY (account, day)
);
--> statement-breakpoint
GRANT SELECT, INSERT, UPDATE ON escrow_gas TO trust_api;
