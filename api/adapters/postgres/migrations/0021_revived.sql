-- Its payer was told that it would never be submitted; then the chain showed it paid after all.
ALTER TABLE payment ADD COLUMN revived boolean NOT NULL DEFAULT false;
