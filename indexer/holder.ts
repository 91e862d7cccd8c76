// How PostgreSQL's list of sessions tells the holder of an index's lock, and the connections of the Ponder that it has started.

/** The name of the launcher's session that holds the lock. */
export const sessionName = (holder: string): string => `indexer ${holder}`;

/** The name of each of its Ponder's connections. */
export const writerName = (schema: string, holder: string): string => `${schema} ${holder}`;

/** A row while the session of this name ($1) holds an advisory lock. */
export const IS_HELD = `select from pg_locks join pg_stat_activity using (pid)
  where locktype = 'advisory' and granted and application_name = $1`;
