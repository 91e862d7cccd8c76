#!/bin/sh
# PostgreSQL's image runs this once, with an empty data directory. The migrations grant the roles their rights.
set -eu

password() { sed -n 's#^postgres\(ql\)\{0,1\}://[^:]*:\([^@]*\)@.*#\2#p' "${SECRETS:-/run/secrets}/$1"; }

psql --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" \
  --set=api="$(password api-database-url)" --set=indexer="$(password indexer-database-url)" <<'SQL'
CREATE ROLE trust_api NOLOGIN;
CREATE ROLE trust_indexer NOLOGIN;
CREATE ROLE trust LOGIN PASSWORD :'api' IN ROLE trust_api;
CREATE ROLE trust_index LOGIN PASSWORD :'indexer' IN ROLE trust_indexer;
SQL
