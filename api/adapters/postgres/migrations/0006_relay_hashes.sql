CREATE INDEX relay_hashes ON relay USING gin (hashes) WITH (fastupdate = off);
