CREATE TABLE payment (
  chain int NOT NULL,
  asset bytea NOT NULL CHECK (length(asset) = 20),
  payer bytea NOT NULL CHECK (length(payer) = 20),
  nonce bytea NOT NULL CHECK (length(nonce) = 32),
  payment_id text,
  digest bytea NOT NULL,
  signature_sha256 bytea NOT NULL,
  encrypted_signature bytea,
  valid_after numeric(78) NOT NULL,
  valid_before numeric(78) NOT NULL,
  route text NOT NULL,
  fingerprint bytea NOT NULL,
  input jsonb,
  pay_to bytea NOT NULL CHECK (length(pay_to) = 20),
  value numeric(78) NOT NULL,
  version text NOT NULL CHECK (version IN ('v1', 'v2')),
  scheme text NOT NULL,
  details jsonb,
  extensions text,
  received_at timestamptz NOT NULL,
  head_block bigint NOT NULL,
  state text NOT NULL CHECK (state IN ('received', 'settling', 'settled', 'fulfilled', 'void')),
  reason text CHECK (reason IN ('refused', 'expired', 'nonce_consumed', 'reverted', 'reversed', 'bait')),
  refusal jsonb,
  state_changed_at timestamptz NOT NULL DEFAULT now(),
  admission_seq bigint NOT NULL DEFAULT 0,
  revived boolean NOT NULL DEFAULT false,
  excused boolean NOT NULL DEFAULT false,
  lease_token uuid,
  lease_until timestamptz NOT NULL DEFAULT '-infinity',
  attempts int NOT NULL DEFAULT 0,
  failures int NOT NULL DEFAULT 0,
  next_attempt_at timestamptz NOT NULL DEFAULT now(),
  parked_at timestamptz,
  alerted_at timestamptz,
  tx bytea,
  block_number bigint,
  block_hash bytea,
  log_index int,
  final_at timestamptz,
  status smallint,
  response bytea CHECK (length(response) <= 2097152),
  location text,
  PRIMARY KEY (chain, asset, payer, nonce),
  CHECK (state NOT IN ('settled', 'fulfilled') OR tx IS NOT NULL OR reason = 'bait'),
  CHECK (state <> 'fulfilled' OR response IS NOT NULL),
  CHECK (state <> 'void' OR reason IS NOT NULL),
  CONSTRAINT payment_input_kept CHECK (state IN ('received', 'void') OR input IS NOT NULL)
-- Refused payments come and go by the million. Vacuum early so that their space is reused.
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);

CREATE UNIQUE INDEX payment_id_live ON payment (payer, payment_id) WHERE payment_id IS NOT NULL AND state <> 'void';
CREATE INDEX payment_todo ON payment (next_attempt_at) INCLUDE (state)
  WHERE (state IN ('settling', 'settled') OR (state = 'fulfilled' AND final_at IS NULL)) AND reason IS NULL AND parked_at IS NULL;
CREATE INDEX payment_parked ON payment (next_attempt_at)
  WHERE (state IN ('settling', 'settled') OR (state = 'fulfilled' AND final_at IS NULL)) AND reason IS NULL AND parked_at IS NOT NULL;
CREATE INDEX payment_named ON payment (alerted_at, parked_at)
  WHERE (state IN ('settling', 'settled') OR (state = 'fulfilled' AND final_at IS NULL)) AND reason IS NULL AND parked_at IS NOT NULL;
CREATE INDEX payment_unresolved ON payment (received_at) WHERE state IN ('settling', 'settled') AND parked_at IS NULL;
CREATE INDEX payment_tx ON payment (tx) WHERE tx IS NOT NULL;
-- Half the size of a B-tree: every refused payment leaves an entry for a while.
CREATE INDEX payment_in_flight ON payment USING hash (payer) WHERE state IN ('received', 'settling');
CREATE INDEX payment_spoilt ON payment (payer, state_changed_at) WHERE state = 'void' AND reason IN ('reverted', 'nonce_consumed');
-- Rows to delete after their window. A reversed payment stays, because a mark and a certificate refer to it.
CREATE INDEX payment_over ON payment (valid_before) WHERE state IN ('received', 'void') AND reason IS DISTINCT FROM 'reversed';
CREATE INDEX payment_kept ON payment (valid_before) WHERE reason = 'bait' AND encrypted_signature IS NOT NULL;
CREATE INDEX payment_purchases ON payment (payer, received_at, nonce) WHERE state IN ('settled', 'fulfilled') AND tx IS NOT NULL;

GRANT SELECT, INSERT, UPDATE, DELETE ON payment TO trust_api;

COMMENT ON TABLE payment IS
  'The journal: one row for each signed payment authorization that a client sent, and the response that was sold for it (docs/payments.md).';
COMMENT ON COLUMN payment.chain IS 'EIP-155 chain id';
COMMENT ON COLUMN payment.asset IS 'address of the token contract';
COMMENT ON COLUMN payment.payment_id IS
  'the client''s payment identifier, or its SHA-256 in base64url if it is longer than 43 characters; null: the client sent none';
COMMENT ON COLUMN payment.digest IS 'EIP-712 hash of the authorization';
COMMENT ON COLUMN payment.encrypted_signature IS
  'the payer''s signature, encrypted with SEALING_KEY; null before it may have been submitted, and again once it is no longer needed';
COMMENT ON COLUMN payment.valid_after IS 'Unix seconds, as the payer signed them';
COMMENT ON COLUMN payment.valid_before IS 'Unix seconds, as the payer signed them';
COMMENT ON COLUMN payment.route IS 'name of the paid route';
COMMENT ON COLUMN payment.fingerprint IS 'SHA-256 of the request''s method, route, sorted query, and canonical body';
COMMENT ON COLUMN payment.input IS
  'the parsed request, enough to fulfill it without the client; null before the payment settles and once it is void';
COMMENT ON COLUMN payment.value IS 'price in atomic units of the asset';
COMMENT ON COLUMN payment.version IS 'x402 protocol version of the request';
COMMENT ON COLUMN payment.scheme IS 'x402 payment scheme';
COMMENT ON COLUMN payment.details IS 'what the scheme stores for this payment; null: nothing';
COMMENT ON COLUMN payment.extensions IS
  'JSON of the extensions that came with the payment, for a remote facilitator; null: none, not submitted yet, or final';
COMMENT ON COLUMN payment.head_block IS 'head of the chain when the payment arrived; the search for its settlement starts there';
COMMENT ON COLUMN payment.state IS
  '"received": nothing was sent; "settling": a transaction may have been; "settled": paid; "fulfilled": the response is stored; "void": over';
COMMENT ON COLUMN payment.reason IS 'why the payment is void, or "bait" for one that is deliberately never submitted';
COMMENT ON COLUMN payment.refusal IS 'why it was refused, for people and machines; null if it was not, or if the cause is unknown';
COMMENT ON COLUMN payment.state_changed_at IS 'last change of state';
COMMENT ON COLUMN payment.admission_seq IS 'from the sequence payment_entry: orders one payer''s payments in flight';
COMMENT ON COLUMN payment.revived IS
  'we reported that this payment would never be submitted, and then the chain showed it as paid';
COMMENT ON COLUMN payment.excused IS 'it reverted, and there is no evidence that the payer caused the failure';
COMMENT ON COLUMN payment.lease_token IS 'the run that may write this row; null: no run holds it';
COMMENT ON COLUMN payment.lease_until IS 'after this, another run may take the row';
COMMENT ON COLUMN payment.attempts IS 'how many times a run has taken the row';
COMMENT ON COLUMN payment.failures IS 'how many times fulfilling the request has failed';
COMMENT ON COLUMN payment.next_attempt_at IS 'when the resolver checks the row next';
COMMENT ON COLUMN payment.parked_at IS 'when the resolver set the payment aside for lack of progress; null: not parked';
COMMENT ON COLUMN payment.alerted_at IS 'when an alert listed the parked payment; null: not yet';
COMMENT ON COLUMN payment.tx IS 'hash of the transaction that settled the payment; null: not settled, or withheld';
COMMENT ON COLUMN payment.log_index IS 'index of the transfer''s log in its block';
COMMENT ON COLUMN payment.final_at IS
  'when the settlement was found in a final block, or the payment was found to be gone permanently; null while it may still change';
COMMENT ON COLUMN payment.status IS 'HTTP status of the sold response';
COMMENT ON COLUMN payment.response IS 'body of the sold response, byte for byte; null before the request is fulfilled';
COMMENT ON COLUMN payment.location IS 'Location header of the sold response; null: none';

CREATE SEQUENCE payment_entry;
GRANT USAGE ON SEQUENCE payment_entry TO trust_api;
COMMENT ON SEQUENCE payment_entry IS 'Values of payment.admission_seq.';

-- Reads relay and relay_member, which a later file creates.
CREATE FUNCTION admit_payment(entering bytea, most int, most_failed int, OUT place bigint, OUT barred_seconds float8)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  failed timestamptz[];
  room int := most;
BEGIN
  -- Transactions admit payers in ascending order of their addresses. The lock's key increases with the address, so two
  -- transactions whose payers share a key cannot deadlock.
  PERFORM pg_advisory_xact_lock(3009, ('x' || encode(substr(entering, 1, 4), 'hex'))::bit(32)::int);
  failed := ARRAY(SELECT state_changed_at FROM payment
    WHERE payer = entering AND state = 'void' AND reason = 'reverted' AND NOT excused
      AND state_changed_at > now() - interval '1 h'
      -- A payment that reverted together with all the others in its transaction was not made to fail by its payer.
      AND NOT EXISTS (SELECT FROM relay_member AS member JOIN relay ON relay.id = relay_id
        WHERE member.chain = payment.chain AND purpose = digest AND relay.reverted AND cardinality(purposes) > 1)
    ORDER BY state_changed_at DESC LIMIT most_failed);
  -- After a failure, the payments in flight are limited to the number that may still fail.
  IF cardinality(failed) > 0 THEN
    room := most_failed - cardinality(failed);
  END IF;
  IF room = 0 THEN
    barred_seconds := extract(epoch FROM failed[most_failed] + interval '1 h' - now());
  ELSIF (SELECT count(*) FROM payment WHERE payer = entering
      AND (state = 'settling' OR (state = 'received' AND lease_until > now()))) < room THEN
    place := nextval('payment_entry');
  END IF;
END $$;
COMMENT ON FUNCTION admit_payment IS
  'Admits a payment of this payer, one at a time, so that each sees those before it. place is null if too many are in flight or too many failed on the chain within an hour; in the second case barred_seconds is the time until the oldest of those failures no longer counts.';

CREATE VIEW parked_payment AS
  SELECT chain, '0x' || encode(payer, 'hex') AS payer, '0x' || encode(nonce, 'hex') AS nonce, route, state, failures, attempts,
    received_at, state_changed_at, parked_at, next_attempt_at
  FROM payment
  WHERE (state IN ('settling', 'settled') OR (state = 'fulfilled' AND final_at IS NULL)) AND reason IS NULL AND parked_at IS NOT NULL;
GRANT SELECT ON parked_payment TO trust_api;
COMMENT ON VIEW parked_payment IS 'For operators: payments that make no progress.';

CREATE TABLE settlement_mark (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  chain int NOT NULL,
  asset bytea NOT NULL,
  payer bytea NOT NULL,
  nonce bytea NOT NULL,
  kind text NOT NULL CHECK (kind IN ('moved', 'reversed')),
  tx bytea,
  block_number bigint,
  at timestamptz NOT NULL DEFAULT now(),
  CHECK ((kind = 'moved') = (tx IS NOT NULL AND block_number IS NOT NULL))
);
CREATE INDEX settlement_mark_payment ON settlement_mark (payer, nonce, chain, asset);
SELECT make_permanent('settlement_mark');
GRANT SELECT, INSERT ON settlement_mark TO trust_api;

COMMENT ON TABLE settlement_mark IS
  'What a reorganization did to a payment after its certificate was issued. Permanent; the certificate itself never changes.';
COMMENT ON COLUMN settlement_mark.kind IS
  '"moved": another transaction or block settles the payment now; "reversed": the payment is gone permanently';
COMMENT ON COLUMN settlement_mark.tx IS 'the new transaction; null for a reversed payment, as is block_number';

CREATE FUNCTION count_final_payment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO counter_change (name, part, count, amount) VALUES ('payment', NEW.chain::text, 1, NEW.value);
  RETURN NULL;
END $$;
COMMENT ON FUNCTION count_final_payment IS 'Counts a payment whose settlement is final, which no reorganization can change.';
CREATE TRIGGER counted AFTER UPDATE ON payment FOR EACH ROW
  WHEN (OLD.final_at IS NULL AND NEW.final_at IS NOT NULL AND NEW.state = 'fulfilled' AND NEW.tx IS NOT NULL)
  EXECUTE FUNCTION count_final_payment();
