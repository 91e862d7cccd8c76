CREATE INDEX payment_reverted ON payment (payer, moved_at) WHERE state = 'void' AND reason = 'reverted';
--> statement-breakpoint
-- Lets a payment of this payer in, one after the other: each sees those before it. Without a place if too many are in
-- flight, or have failed on the chain within an hour; then also after how many seconds one of these is too old to count.
-- After a failure, no more are in flight than may still fail. What reverted with all others of its transaction did not
-- fail by its payer's doing.
CREATE FUNCTION admit_payment(entering bytea, most int, most_failed int, OUT place bigint, OUT barred_seconds float8)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  failed timestamptz[];
  room int := most;
BEGIN
  PERFORM pg_advisory_xact_lock(3009, hashtext(encode(entering, 'hex')));
  failed := ARRAY(SELECT moved_at FROM payment
    WHERE payer = entering AND state = 'void' AND reason = 'reverted' AND moved_at > now() - interval '1 h'
      AND NOT EXISTS (SELECT FROM relay_member AS member JOIN relay ON relay.id = relay_id
        WHERE member.chain = payment.chain AND purpose = digest AND relay.reverted AND cardinality(purposes) > 1)
    ORDER BY moved_at DESC LIMIT most_failed);
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
--> statement-breakpoint
-- The release before calls this one.
CREATE OR REPLACE FUNCTION enter_payment(entering bytea, most int) RETURNS bigint LANGUAGE sql VOLATILE AS
  'SELECT place FROM admit_payment(entering, most, 3)';
