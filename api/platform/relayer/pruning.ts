import type pg from "pg";

/** So many of the oldest are looked at, and at most deleted, in one statement. */
const LOOKED_AT = 1_000;

/**
 * What was sent for a purpose is remembered until its authorization can no longer be used: it was valid for a day at most
 * when it was sent, so after thirty days nobody can have it sent again.
 */
const PRUNE = `DELETE FROM relay WHERE id = ANY(ARRAY(
    SELECT id FROM (SELECT id, state, created_at FROM relay ORDER BY id LIMIT ${LOOKED_AT}) oldest
    WHERE state = 'final' AND created_at < now() - interval '30 days'))`;

/** Deletes some of the relayer's transactions that have been final for long; returns how many, 0 when there are no more. */
export const createRelayPruning = (pool: pg.Pool) => async (): Promise<number> =>
  (await pool.query({ name: "relay-prune", text: PRUNE })).rowCount ?? 0;
