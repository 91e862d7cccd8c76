CREATE TABLE observation (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  held_until timestamptz NOT NULL,
  taken_at timestamptz,
  facts jsonb
);
GRANT SELECT, INSERT, UPDATE ON observation TO trust_api;

COMMENT ON TABLE observation IS
  'What the process that last looked at the chains saw there, for the metrics of all processes. One row.';
COMMENT ON COLUMN observation.held_until IS 'until then, no other process looks';
COMMENT ON COLUMN observation.taken_at IS 'when the look ended; null before the first one has';
