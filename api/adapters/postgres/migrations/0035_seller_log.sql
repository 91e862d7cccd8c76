-- Published exams are entries of the transparency log, and so are their corrections (docs/log.md).
CREATE FUNCTION queue_seller_exam() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log_pending (type, ref) VALUES ('seller_certificate', NEW.exam) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
--> statement-breakpoint
CREATE FUNCTION queue_seller_correction() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- What was never published is no entry, and neither is its correction.
  INSERT INTO log_pending (type, ref)
    SELECT 'seller_correction', exam FROM seller_exam_result WHERE exam = NEW.exam AND is_public
    ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
--> statement-breakpoint
CREATE TRIGGER queue AFTER INSERT ON seller_exam_result FOR EACH ROW WHEN (NEW.is_public)
  EXECUTE FUNCTION queue_seller_exam();
--> statement-breakpoint
CREATE TRIGGER queue AFTER INSERT ON seller_exam_correction FOR EACH ROW EXECUTE FUNCTION queue_seller_correction();
