-- Gas accounts of past days and booked transfers are deleted.
CREATE INDEX escrow_gas_day ON escrow_gas (day);
--> statement-breakpoint
GRANT DELETE ON escrow_gas TO trust_api;
--> statement-breakpoint
CREATE INDEX decoy_transfer_block ON decoy_transfer (chain, block_number);
--> statement-breakpoint
GRANT DELETE ON decoy_transfer TO trust_api;
