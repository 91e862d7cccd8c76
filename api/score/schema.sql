CREATE TABLE inflow (
  wallet bytea PRIMARY KEY CHECK (length(wallet) = 20),
  basis bytea NOT NULL,
  through bigint,
  through_hash bytea,
  through_nonce bytea,
  inflows jsonb NOT NULL,
  claimed_by text,
  claimed_until timestamptz NOT NULL,
  used_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX inflow_used ON inflow (used_at);
GRANT SELECT, INSERT, UPDATE, DELETE ON inflow TO trust_api;

COMMENT ON TABLE inflow IS 'Cache: totals of USDC transfers to a wallet, for the score (api/score/lookup/inflows.ts).';
COMMENT ON COLUMN inflow.basis IS 'SHA-256 of the first block and the ignored addresses';
COMMENT ON COLUMN inflow.through IS
  'final block up to which transfers are counted; through_hash and through_nonce are its lookup_mark; null if nothing is counted yet';
COMMENT ON COLUMN inflow.inflows IS 'count, sums by sender, and the largest sender as of each block in which it changed';
COMMENT ON COLUMN inflow.claimed_by IS 'the process that is reading more transfers, or null';
COMMENT ON COLUMN inflow.claimed_until IS 'when another process may continue reading';
COMMENT ON COLUMN inflow.used_at IS 'last use, to the day';

CREATE TABLE score_lookup (
  wallet bytea PRIMARY KEY CHECK (length(wallet) = 20),
  basis bytea NOT NULL,
  block bigint NOT NULL,
  found jsonb NOT NULL,
  made_at timestamptz NOT NULL
);
CREATE INDEX score_lookup_made ON score_lookup (made_at);
GRANT SELECT, INSERT, UPDATE, DELETE ON score_lookup TO trust_api;

COMMENT ON TABLE score_lookup IS 'Cache: look-ups about a wallet''s payees, for the score.';
COMMENT ON COLUMN score_lookup.basis IS 'as in inflow';
COMMENT ON COLUMN score_lookup.block IS 'final block of the look-up';
COMMENT ON COLUMN score_lookup.found IS 'the wallet''s largest funder, and the result for each payee';

CREATE TABLE lookup_mark (
  block bigint PRIMARY KEY,
  hash bytea NOT NULL CHECK (length(hash) = 32),
  nonce bytea NOT NULL CHECK (length(nonce) = 32),
  seen_at timestamptz NOT NULL DEFAULT now(),
  newest_at timestamptz
);
CREATE INDEX lookup_mark_newest ON lookup_mark (newest_at) WHERE newest_at IS NOT NULL;
GRANT SELECT, INSERT, UPDATE, DELETE ON lookup_mark TO trust_api;

COMMENT ON TABLE lookup_mark IS
  'Final blocks that contain an authorized payment. A node that reports the payment''s nonce has that block.';
COMMENT ON COLUMN lookup_mark.nonce IS 'nonce of the payment';
COMMENT ON COLUMN lookup_mark.newest_at IS
  'when this was found to be the newest final block with an authorized payment; null if it was found as an older one';

CREATE TABLE lookup_budget (
  hour int NOT NULL,
  client text NOT NULL,
  used int NOT NULL,
  PRIMARY KEY (hour, client)
);
GRANT SELECT, INSERT, UPDATE, DELETE ON lookup_budget TO trust_api;

COMMENT ON TABLE lookup_budget IS 'Requests to nodes that clients caused, by hour.';
COMMENT ON COLUMN lookup_budget.hour IS 'hours since 1970';
COMMENT ON COLUMN lookup_budget.client IS
  'the purpose, followed by an address, by "network " and a network, or by nothing for the total of all clients; the score''s purpose is empty';
