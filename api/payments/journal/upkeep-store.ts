import type pg from "pg";
import { bytes, change, hex, named } from "../../platform/db/connection.ts";
import type { Backlog } from "../../platform/metrics/meter.ts";
import { networkOfChain } from "../../platform/networks.ts";
import type { Journal } from "../journal.ts";
import type { Receipts } from "../receipt.ts";
import type { State } from "../step-types.ts";
import {
  ACTIVE,
  keyValues,
  LOOK_LATER,
  PARKED,
  type PaymentColumns,
  parsePayment,
  UNFINISHED_COLUMNS,
} from "./row-store.ts";

/** A limit for one statement, so that it does not block others for long. */
const PRUNED_TOGETHER = 1_000;
/** The limit of payments in one alert. */
const NAMED_TOGETHER = 50;
/** The limit of a count, so that its cost does not grow with the backlog. */
const COUNTED = 5_000;

/** Matches rows to delete after their window, because no other row refers to them. */
const OVER = "state IN ('received', 'void') AND reason IS DISTINCT FROM 'reversed'";
const UNRESOLVED = "state IN ('settling', 'settled') AND parked_at IS NULL";

const PRUNE = `DELETE FROM payment WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM payment WHERE ${OVER} AND valid_before < extract(epoch FROM now()) - 3600 AND lease_until < now() LIMIT ${PRUNED_TOGETHER} FOR UPDATE SKIP LOCKED))`;

const BACKLOG = `SELECT
    (SELECT count(*)::int FROM (SELECT FROM payment WHERE ${UNRESOLVED} LIMIT ${COUNTED}) counted) AS unresolved,
    (SELECT extract(epoch FROM now() - min(received_at))::int FROM payment WHERE ${UNRESOLVED}) AS oldest`;

const NAME = `UPDATE payment SET alerted_at = now() WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM payment WHERE ${PARKED} AND alerted_at IS NULL
      AND NOT EXISTS (SELECT FROM payment WHERE ${PARKED} AND alerted_at > now() - interval '1 h')
    ORDER BY alerted_at, parked_at LIMIT ${NAMED_TOGETHER} FOR UPDATE SKIP LOCKED))
  RETURNING payer, nonce, route, state, failures, received_at`;

interface Named {
  payer: Buffer;
  nonce: Buffer;
  route: string;
  state: State;
  failures: number;
  received_at: Date;
}

/** Creates the upkeep of the journal: pruning and its statistics. */
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

/** The most parked rows in one claim, so that they do not displace the others. */
const PARKED_TOGETHER = 16;
/** A chain may take an hour to finalize. Everything else makes progress within minutes, or never. */
const WITHOUT_PROGRESS = `state_changed_at < now() - CASE state WHEN 'fulfilled' THEN interval '2 h' ELSE interval '10 min' END`;

const duePart = (condition: string, limit: string) => `ARRAY(
    SELECT ctid FROM payment WHERE ${condition} AND next_attempt_at <= now() AND lease_until < now()
    ORDER BY next_attempt_at LIMIT ${limit} FOR UPDATE SKIP LOCKED)`;

/** One statement, so that two processes never claim the same row. `next_attempt_at` makes the row due again later. */
const CLAIM = `UPDATE payment SET next_attempt_at = now() + CASE WHEN parked_at IS NULL THEN interval '30 s' ELSE interval '1 h' END,
    parked_at = CASE WHEN parked_at IS NULL AND ${WITHOUT_PROGRESS} THEN now() ELSE parked_at END
  WHERE ctid = ANY(${duePart(ACTIVE, "$1")} || ${duePart(PARKED, String(PARKED_TOGETHER))})
  RETURNING ${UNFINISHED_COLUMNS}`;

const columns = (rows: readonly (readonly unknown[])[]): unknown[][] =>
  (rows[0] ?? []).map((_, column) => rows.map((row) => row[column]));

/** Creates the part of the journal that the resolver uses. */
export function createResolving(pool: pg.Pool): Pick<Journal, "due" | "postpone" | "finalize"> {
  return {
    async due(limit) {
      const { rows } = await pool.query<PaymentColumns>(named(CLAIM, [limit]));
      return rows.map(parsePayment);
    },

    async postpone(keys) {
      await change(
        pool,
        `UPDATE payment SET next_attempt_at = ${LOOK_LATER}
        WHERE (chain, asset, payer, nonce) IN (SELECT * FROM unnest($1::int[], $2::bytea[], $3::bytea[], $4::bytea[])) AND state = 'fulfilled'`,
        columns(keys.map(keyValues)),
      );
    },

    finalize: (settled) =>
      change(
        pool,
        `UPDATE payment SET final_at = now(), encrypted_signature = NULL, lease_token = NULL
        WHERE (chain, asset, payer, nonce, block_hash)
            IN (SELECT * FROM unnest($1::int[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[]))
          AND state = 'fulfilled' AND final_at IS NULL AND lease_until < now()`,
        columns(settled.map(({ key, settlement }) => [...keyValues(key), bytes(settlement.blockHash)])),
      ),
  };
}

const TIMEOUT_MS = 2_000;

const count = (kind: string, name: string, from: string) =>
  `SELECT '${kind}' AS kind, ${name} AS name, count(*)::int AS count FROM (${from} LIMIT ${COUNTED}) counted`;

/** Each part reads a partial index of unfinished rows, so its cost does not grow with history. */
const WAITING = [
  `${count("payment", "state", `SELECT state FROM payment WHERE ${ACTIVE}`)} GROUP BY state`,
  count("payment", "'received'", "SELECT FROM payment WHERE state = 'received' AND reason IS DISTINCT FROM 'reversed'"),
  count("parked", "'parked'", `SELECT FROM payment WHERE ${PARKED}`),
  count("withheld", "'withheld'", "SELECT FROM payment WHERE reason = 'bait' AND encrypted_signature IS NOT NULL"),
  `${count("task", "state", "SELECT state FROM escrow_task WHERE state <> 'final'")} GROUP BY state`,
].join(" UNION ALL ");

interface Row {
  readonly kind: "payment" | "parked" | "withheld" | "task";
  readonly name: string;
  readonly count: number;
}

interface TimedQuery extends pg.QueryConfig {
  readonly query_timeout: number;
}

/** Counts what is waiting, in one query. Rejects if that takes longer than two seconds. */
export const createBacklogReader = (pool: pg.Pool) => async (): Promise<Backlog> => {
  const query: TimedQuery = { name: "backlog", text: WAITING, query_timeout: TIMEOUT_MS };
  const { rows } = await pool.query<Row>(query);
  const of = (wanted: Row["kind"]) =>
    Object.fromEntries(rows.filter(({ kind }) => kind === wanted).map(({ name, count }) => [name, count]));
  return {
    payments: of("payment"),
    parkedPayments: of("parked").parked ?? 0,
    escrowTasks: of("task"),
    withheldSignatures: of("withheld").withheld ?? 0,
  };
};

interface Columns {
  chain: number;
  tx: Buffer;
  block_number: string;
  final: boolean;
  payer: Buffer;
  pay_to: Buffer;
  value: string;
  route: string;
  location: string | null;
}

export const createReceipts = (pool: pg.Pool): Receipts => ({
  async byTransaction(transaction) {
    const { rows } = await pool.query<Columns>({
      name: "receipt",
      text: `SELECT chain, tx, block_number, final_at IS NOT NULL AS final, payer, pay_to, value, route, location
        FROM payment WHERE tx = $1 AND state IN ('settled', 'fulfilled') ORDER BY log_index`,
      values: [bytes(transaction)],
    });
    return rows.map((r) => ({
      network: networkOfChain(r.chain),
      transaction: hex(r.tx),
      block: Number(r.block_number),
      final: r.final,
      payer: hex(r.payer),
      payTo: hex(r.pay_to),
      value: BigInt(r.value),
      route: r.route,
      location: r.location,
    }));
  },
});
