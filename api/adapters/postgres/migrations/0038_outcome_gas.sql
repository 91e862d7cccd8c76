-- What an outcome is reckoned with on its account; NULL for those from before, of which nothing is given back.
ALTER TABLE escrow_task ADD COLUMN gas bigint;
