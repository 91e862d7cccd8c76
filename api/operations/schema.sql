CREATE TABLE observation (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  held_until timestamptz NOT NULL,
  taken_at timestamptz,
  facts jsonb
);
GRANT SELECT, INSERT, UPDATE ON observation TO trust_api;

COMMENT ON TABLE observation IS
  'The last observation of the chains by any process, for the metrics of all processes. One row.';
COMMENT ON COLUMN observation.held_until IS 'until then, no other process observes';
COMMENT ON COLUMN observation.taken_at IS 'when the observation ended; null before the first one';
