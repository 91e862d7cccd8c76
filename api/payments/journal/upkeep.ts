import type pg from "pg";
import type { Journal } from "../journal.ts";
import type { State } from "../step-types.ts";
import { change, hex, named } from "../../platform/db/connection.ts";
import { PARKED } from "./payment-row.ts";

/** So many are deleted in one statement: it never holds anyone up. */
const PRUNED_TOGETHER = 1_000;
/** So many names are as much as anyone reads. */
const NAMED_TOGETHER = 50;
/** More are not counted: a count must not take long because there is much to count. */
export const COUNTED = 5_000;

/** What goes once its window is over: nothing else refers to it. */
const OVER = "state IN ('received', 'void') AND reason IS DISTINCT FROM 'reversed'";
const UNRESOLVED = "state IN ('settling', 'settled') AND parked_at IS NULL";

const PRUNE = `DELETE FROM payment WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM payment WHERE ${OVER} AND valid_before < extract(epoch FROM now()) - 3600 AND lease_until < now() LIMIT ${PRUNED_TOGETHER} FOR UPDATE SKIP LOCKED))`;

const BACKLOG = `SELECT
    (SELECT count(*)::int FROM (SELECT FROM payment WHERE ${UNRESOLVED} LIMIT ${COUNTED}) counted) AS unresolved,
    (SELECT extract(epoch FROM now() - min(received_at))::int FROM payment WHERE ${UNRESOLVED}) AS oldest`;

const NAME = `UPDATE payment SET named_at = now() WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM payment WHERE ${PARKED} AND named_at IS NULL
      AND NOT EXISTS (SELECT FROM payment WHERE ${PARKED} AND named_at > now() - interval '1 h')
    ORDER BY named_at, parked_at LIMIT ${NAMED_TOGETHER} FOR UPDATE SKIP LOCKED))
  RETURNING payer, nonce, route, state, failures, received_at`;

interface Named {
  payer: Buffer;
  nonce: Buffer;
  route: string;
  state: State;
  failures: number;
  received_at: Date;
}

/** What keeps the journal small, and what it says about itself. */
export function createUpkeep(pool: pg.Pool): Pick<Journal, "prune" | "backlog" | "nameParked"> {
  return {
    prune: () => change(pool, PRUNE),

    async backlog() {
      const { rows } = await pool.query<{ unresolved: number; oldest: number | null }>(named(BACKLOG, []));
      return { unresolved: rows[0]?.unresolved ?? 0, oldestSeconds: rows[0]?.oldest ?? null };
    },

    async nameParked() {
      const { rows } = await pool.query<Named>(named(NAME, []));
      return rows.map(({ payer, nonce, route, state, failures, received_at }) => ({
        payer: hex(payer),
        nonce: hex(nonce),
        route,
        state,
        failures,
        receivedAt: received_at,
      }));
    },
  };
}
