ALTER TABLE test_session ADD COLUMN wallet_decoy bytea CHECK (length(wallet_decoy) = 20);
