-- Outcomes that are not final yet are watched by the block that shows them: one look for all of a block.
ALTER TABLE escrow_task
  ADD COLUMN found text CHECK (found IN ('release', 'refund')),
  ADD COLUMN block_number bigint,
  ADD COLUMN block_hash bytea CHECK (length(block_hash) = 32);
--> statement-breakpoint
-- Those of the release before are found on the chain again.
UPDATE escrow_task SET state = 'open', look_at = now() WHERE state = 'mined';
--> statement-breakpoint
ALTER TABLE escrow_task ADD CONSTRAINT escrow_task_mined
  CHECK (state <> 'mined' OR (found IS NOT NULL AND tx IS NOT NULL AND block_number IS NOT NULL AND block_hash IS NOT NULL));
--> statement-breakpoint
CREATE INDEX escrow_task_mined ON escrow_task (block_hash) WHERE state = 'mined';
