ALTER TABLE test_session ADD COLUMN token_shared boolean NOT NULL DEFAULT false;
