-- What each witness has of a log, and when it is asked next. Any process may ask; the one that moves `due_at` does.
CREATE TABLE log_witness (
  generation int NOT NULL,
  vkey text NOT NULL,
  -- How many entries it has cosigned, as far as is known; a hint that its answers correct.
  size bigint NOT NULL DEFAULT 0,
  due_at timestamptz NOT NULL DEFAULT '-infinity',
  asked_at timestamptz,
  cosigned_size bigint,
  cosigned_seconds bigint,
  failures int NOT NULL DEFAULT 0,
  error text,
  error_at timestamptz,
  -- Why nothing may be signed until this witness cosigns again; null while nothing speaks against it.
  danger text,
  PRIMARY KEY (generation, vkey)
);
--> statement-breakpoint
GRANT SELECT, INSERT, UPDATE ON log_witness TO trust_api;
