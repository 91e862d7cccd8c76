-- The block that showed the hold: what a node says of an earlier one is no news of it. NULL for those from before.
ALTER TABLE escrow_task ADD COLUMN held_block bigint;
