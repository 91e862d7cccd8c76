-- A reorganization may take an exam's payments from the chain after its result is out (docs/certificates.md#sellers).
CREATE TABLE seller_exam_reversal (
  exam text PRIMARY KEY REFERENCES seller_exam_result (exam),
  at timestamptz NOT NULL DEFAULT now()
);
--> statement-breakpoint
-- Published exams whose payments are not final yet.
CREATE TABLE seller_exam_watch (
  exam text PRIMARY KEY REFERENCES seller_exam_result (exam),
  due_at timestamptz NOT NULL DEFAULT now()
);
--> statement-breakpoint
CREATE INDEX seller_exam_watch_due ON seller_exam_watch (due_at);
--> statement-breakpoint
CREATE INDEX seller_exam_bought ON seller_exam (payer, nonce);
--> statement-breakpoint
-- Since when an exam rests on a payment that is gone: one that it made, or the one that bought it.
CREATE VIEW seller_exam_gone AS
  SELECT exam, min(at) AS at FROM (
    SELECT exam, at FROM seller_exam_reversal
    UNION ALL
    SELECT e.id, m.at FROM settlement_mark m
      JOIN seller_exam e ON e.payer = m.payer AND e.nonce = m.nonce AND e.chain = m.chain AND e.asset = m.asset
      WHERE m.kind = 'reversed'
  ) AS gone GROUP BY exam;
--> statement-breakpoint
CREATE OR REPLACE FUNCTION queue_seller_exam() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log_pending (type, ref) VALUES ('seller_certificate', NEW.exam) ON CONFLICT DO NOTHING;
  -- The payment that bought it may be reversed before it ends.
  IF EXISTS (SELECT FROM seller_exam_gone WHERE exam = NEW.exam) THEN
    INSERT INTO log_pending (type, ref) VALUES ('reversal', NEW.exam) ON CONFLICT DO NOTHING;
  END IF;
  RETURN NULL;
END $$;
--> statement-breakpoint
CREATE FUNCTION queue_seller_reversal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log_pending (type, ref)
    SELECT 'reversal', exam FROM seller_exam_result WHERE exam = NEW.exam AND is_public
      AND NOT EXISTS (SELECT FROM log_entry WHERE type = 'reversal' AND ref = NEW.exam)
    ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
--> statement-breakpoint
CREATE FUNCTION queue_bought_reversals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log_pending (type, ref)
    SELECT 'reversal', r.exam FROM seller_exam e JOIN seller_exam_result r ON r.exam = e.id AND r.is_public
    WHERE e.payer = NEW.payer AND e.nonce = NEW.nonce AND e.chain = NEW.chain AND e.asset = NEW.asset
      AND NOT EXISTS (SELECT FROM log_entry WHERE type = 'reversal' AND ref = r.exam)
    ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
--> statement-breakpoint
CREATE TRIGGER queue AFTER INSERT ON seller_exam_reversal FOR EACH ROW EXECUTE FUNCTION queue_seller_reversal();
--> statement-breakpoint
CREATE TRIGGER queue_sellers AFTER INSERT ON settlement_mark FOR EACH ROW WHEN (NEW.kind = 'reversed')
  EXECUTE FUNCTION queue_bought_reversals();
--> statement-breakpoint
CREATE TRIGGER permanent BEFORE UPDATE OR DELETE ON seller_exam_reversal FOR EACH ROW EXECUTE FUNCTION refuse_change();
--> statement-breakpoint
CREATE TRIGGER permanent_truncate BEFORE TRUNCATE ON seller_exam_reversal FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
--> statement-breakpoint
ALTER TABLE seller_exam_reversal ENABLE ALWAYS TRIGGER permanent;
--> statement-breakpoint
ALTER TABLE seller_exam_reversal ENABLE ALWAYS TRIGGER permanent_truncate;
--> statement-breakpoint
GRANT SELECT, INSERT ON seller_exam_reversal TO trust_api;
--> statement-breakpoint
GRANT SELECT ON seller_exam_gone TO trust_api;
--> statement-breakpoint
GRANT SELECT, INSERT, UPDATE, DELETE ON seller_exam_watch TO trust_api;
