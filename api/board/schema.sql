CREATE TABLE certificate_change (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  certificate text NOT NULL,
  step smallint NOT NULL CHECK (step IN (1, -1))
);
GRANT SELECT, INSERT, DELETE ON certificate_change TO trust_api;

COMMENT ON TABLE certificate_change IS 'Issued and reversed certificates that the statistics do not count yet.';
COMMENT ON COLUMN certificate_change.certificate IS 'id of a certificate, or of a reversed exam, which the statistics ignore';
COMMENT ON COLUMN certificate_change.step IS '1: issued; -1: reversed';

CREATE FUNCTION note_certificate_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO certificate_change (certificate, step) VALUES (NEW.ref, CASE NEW.type WHEN 'certificate' THEN 1 ELSE -1 END);
  RETURN NULL;
END $$;
COMMENT ON FUNCTION note_certificate_change IS
  'Follows the queue of the log, which has each certificate once and each reversal once, even if several of its payments are reversed.';
CREATE TRIGGER counted AFTER INSERT ON log_pending FOR EACH ROW WHEN (NEW.type IN ('certificate', 'reversal'))
  EXECUTE FUNCTION note_certificate_change();

CREATE TABLE certificate_tally (
  wallet bytea NOT NULL CHECK (length(wallet) = 20),
  product text NOT NULL,
  passed int NOT NULL,
  failed int NOT NULL,
  pass_until timestamptz,
  fail_until timestamptz,
  PRIMARY KEY (wallet, product)
);
GRANT SELECT, INSERT, UPDATE ON certificate_tally TO trust_api;

COMMENT ON TABLE certificate_tally IS 'Counted certificates of one wallet for one product, without the reversed ones.';
COMMENT ON COLUMN certificate_tally.pass_until IS 'when the newest PASS expires, or null without one';
COMMENT ON COLUMN certificate_tally.fail_until IS
  'when the newest FAIL that concerns the wallet expires, or null without one';

CREATE TABLE certificate_day_wallet (
  day date NOT NULL,
  wallet bytea NOT NULL CHECK (length(wallet) = 20),
  PRIMARY KEY (day, wallet)
);
GRANT SELECT, INSERT, DELETE ON certificate_day_wallet TO trust_api;

COMMENT ON TABLE certificate_day_wallet IS
  'A sample of the wallets with a certificate on a day, large enough to decide whether the day''s figure may be published.';

CREATE FUNCTION is_reversed(c certificate) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT FROM settlement_mark m WHERE m.kind = 'reversed' AND m.payer = c.wallet
    AND m.nonce IN (c.nonce, c.also_nonce, c.third_nonce) AND m.chain = c.chain AND m.asset = c.asset)
$$;
COMMENT ON FUNCTION is_reversed IS 'Whether a payment that the certificate depends on is gone permanently.';

CREATE FUNCTION count_certified(owner bytea, step int) RETURNS void LANGUAGE sql AS $$
  INSERT INTO counter_change (name, part, count)
    SELECT 'certified', moment, sign * step FROM (
      SELECT max(pass_until) AS ends, max(fail_until) AS begins FROM certificate_tally WHERE wallet = owner) t,
      LATERAL (VALUES (coalesce(to_char(begins AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI'), ''), 1),
        (to_char(ends AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI'), -1)) AS moments (moment, sign)
    WHERE ends > coalesce(begins, '-infinity')
$$;
COMMENT ON FUNCTION count_certified IS
  'Adds or removes the time for which a wallet is certified, from the expiry of its last FAIL to the expiry of its last PASS. The sum of all parts up to a moment is the number of wallets that are certified then, to the minute.';

CREATE FUNCTION count_certificates(most int, sampled int, unattributed text[]) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  change record;
  c certificate;
  before record;
  after record;
  taken int := 0;
BEGIN
  IF NOT pg_try_advisory_xact_lock(7402405) THEN
    RETURN 0;
  END IF;
  FOR change IN
    WITH gone AS (DELETE FROM certificate_change WHERE seq = ANY(ARRAY(SELECT seq FROM certificate_change ORDER BY seq LIMIT most))
      RETURNING *) SELECT * FROM gone ORDER BY seq
  LOOP
    taken := taken + 1;
    SELECT * INTO c FROM certificate WHERE id = change.certificate;
    CONTINUE WHEN NOT FOUND;

    PERFORM count_certified(c.wallet, -1);
    SELECT coalesce(sum(passed + failed), 0) AS tests, coalesce(sum(passed) FILTER (WHERE product = c.product), 0) AS passed,
      coalesce(sum(failed) FILTER (WHERE product = c.product), 0) AS failed
      INTO before FROM certificate_tally WHERE wallet = c.wallet;
    INSERT INTO certificate_tally AS t (wallet, product, passed, failed, pass_until, fail_until)
      VALUES (c.wallet, c.product, CASE c.result WHEN 'pass' THEN change.step ELSE 0 END,
        CASE c.result WHEN 'fail' THEN change.step ELSE 0 END,
        (SELECT valid_until FROM certificate p WHERE p.wallet = c.wallet AND p.product = c.product AND p.result = 'pass'
          AND NOT is_reversed(p) ORDER BY issued_at DESC LIMIT 1),
        (SELECT valid_until FROM certificate f WHERE f.wallet = c.wallet AND f.product = c.product AND f.result = 'fail'
          AND c.product <> ALL(unattributed) AND NOT is_reversed(f) ORDER BY issued_at DESC LIMIT 1))
      ON CONFLICT (wallet, product) DO UPDATE SET passed = t.passed + excluded.passed, failed = t.failed + excluded.failed,
        pass_until = excluded.pass_until, fail_until = excluded.fail_until;
    SELECT sum(passed + failed) AS tests, sum(passed) FILTER (WHERE product = c.product) AS passed,
      sum(failed) FILTER (WHERE product = c.product) AS failed
      INTO after FROM certificate_tally WHERE wallet = c.wallet;
    PERFORM count_certified(c.wallet, 1);

    INSERT INTO counter_change (name, part, count)
      SELECT changes.* FROM (VALUES
        ('tested', '', (after.tests > 0)::int - (before.tests > 0)::int),
        ('wallets', c.product, (after.passed + after.failed > 0)::int - (before.passed + before.failed > 0)::int),
        ('passed', c.product, (after.passed - before.passed)::int),
        ('passed_wallets', c.product, (after.passed > 0)::int - (before.passed > 0)::int),
        ('failed', c.product, (after.failed - before.failed)::int),
        ('failed_wallets', c.product, (after.failed > 0)::int - (before.failed > 0)::int),
        ('day', to_char(c.issued_at AT TIME ZONE 'UTC', 'YYYY-MM-DD'), change.step::int)) AS changes (name, part, difference)
      WHERE difference <> 0;
    PERFORM sample_wallet((c.issued_at AT TIME ZONE 'UTC')::date, c.wallet, sampled);
  END LOOP;
  RETURN taken;
END $$;
COMMENT ON FUNCTION count_certificates IS
  'Counts up to "most" issued and reversed certificates, one process at a time, and returns their number. A FAIL for an unattributed product does not concern its wallet. Up to "sampled" wallets are sampled per day.';

CREATE FUNCTION sample_wallet(of_day date, owner bytea, sampled int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM certificate c WHERE c.wallet = owner AND c.issued_at >= of_day::timestamp AT TIME ZONE 'UTC'
      AND c.issued_at < (of_day + 1)::timestamp AT TIME ZONE 'UTC' AND NOT is_reversed(c)) THEN
    DELETE FROM certificate_day_wallet WHERE day = of_day AND wallet = owner;
  ELSIF (SELECT count(*) FROM certificate_day_wallet WHERE day = of_day) < sampled THEN
    INSERT INTO certificate_day_wallet (day, wallet) VALUES (of_day, owner) ON CONFLICT DO NOTHING;
  END IF;
END $$;
COMMENT ON FUNCTION sample_wallet IS
  'Keeps the wallet in its day''s sample until all its certificates of that day are reversed. A day that loses a sampled wallet may be withheld longer than necessary, never shorter.';
