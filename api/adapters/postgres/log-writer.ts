import type pg from "pg";
import { tileWidth } from "../../../packages/verifier/src/tlog/tile.ts";
import type { Generation } from "../../log/log-store.ts";
import type { LogWriter, TreeEnd, WritingTurn } from "../../log/log-writer.ts";
import { inTransaction, named } from "./connection.ts";
import { readWaiting } from "./log-queue.ts";

/** Any number: the process that writes the log holds it. */
const LOCK = 7_402_403;

const TRY = { name: "log-try", text: `SELECT pg_try_advisory_xact_lock(${LOCK}) AS mine` };

/** One statement after the lock: it sees everything that the turn before has committed. */
const END = `SELECT c.size, c.root, c.at, extract(epoch FROM clock_timestamp() - c.at)::float8 AS age,
    pg_postmaster_start_time()::text || ' ' || coalesce(inet_server_addr()::text, '') AS server
  FROM (SELECT) AS one LEFT JOIN (
    SELECT size, root, at FROM log_checkpoint WHERE generation = $1 ORDER BY size DESC LIMIT 1) AS c ON true`;

const EDGE = `SELECT level, hashes FROM log_tile
  WHERE generation = $1 AND (level, n) IN (SELECT * FROM unnest($2::smallint[], $3::bigint[]))`;

const APPEND = `INSERT INTO log_entry (generation, idx, type, ref, entry)
  SELECT $1, * FROM unnest($2::bigint[], $3::text[], $4::text[], $5::bytea[])`;
const TAKE = "DELETE FROM log_pending WHERE seq = ANY($1::bigint[])";

const GROW = `INSERT INTO log_tile (generation, level, n, hashes)
  SELECT $1, * FROM unnest($2::smallint[], $3::bigint[], $4::bytea[])
  ON CONFLICT (generation, level, n) DO UPDATE SET hashes = excluded.hashes`;
const CHECKPOINT = "INSERT INTO log_checkpoint (generation, size, root, note) VALUES ($1, $2, $3, $4)";

const ANNOUNCE = `INSERT INTO log_pending (type, ref)
  SELECT type, ref FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS said (type, ref, place)
  WHERE NOT EXISTS (SELECT FROM log_entry WHERE log_entry.type = said.type AND log_entry.ref = said.ref)
  ORDER BY place ON CONFLICT DO NOTHING`;

/** A mark and a certificate that are committed at the same moment do not see each other, so neither queues the reversal. */
const MISSED = `INSERT INTO log_pending (type, ref)
  SELECT 'reversal', c.id FROM settlement_mark m JOIN certificate c
    ON c.wallet = m.payer AND m.nonce IN (c.nonce, c.also_nonce, c.third_nonce) AND c.chain = m.chain AND c.asset = m.asset
  WHERE m.kind = 'reversed' AND NOT EXISTS (SELECT FROM log_entry WHERE type = 'reversal' AND ref = c.id)
  ON CONFLICT DO NOTHING`;

interface EndColumns {
  size: string | null;
  root: Buffer | null;
  at: Date | null;
  age: number | null;
  server: string;
}

/** Levels of a tree whose size is a safe integer. */
const LEVELS = [0, 1, 2, 3, 4, 5, 6];

export function createLogWriter(pool: pg.Pool): LogWriter {
  return {
    async hasWaiting() {
      const text = "SELECT EXISTS (SELECT FROM log_pending) AS waits";
      return (await pool.query<{ waits: boolean }>({ name: "log-waits", text })).rows[0]?.waits === true;
    },

    inTurn: (generation, work) =>
      inTransaction(pool, async (client, [isMine]) => (isMine ? work(await turnOn(client, generation)) : null), [
        { statement: TRY, answer: ({ rows }) => rows[0]?.mine === true },
      ] as const),

    async begin({ generation, origin, vkey }) {
      const row = [generation, origin, vkey];
      await pool.query("INSERT INTO log (generation, origin, vkey) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", row);
      const { rows } = await pool.query<Omit<Generation, "startedAt"> & { started_at: Date }>(
        "SELECT generation, origin, vkey, started_at FROM log WHERE generation = $1 OR origin = $2 ORDER BY generation = $1 DESC",
        [generation, origin],
      );
      const [found] = rows;
      if (found === undefined) throw new Error("the log's generation is neither added nor there");
      const { started_at, ...known } = found;
      return { ...known, startedAt: started_at };
    },

    async announce(refs) {
      await pool.query(ANNOUNCE, [refs.map(({ type }) => type), refs.map(({ ref }) => ref)]);
    },

    async queueMissed() {
      await pool.query(MISSED);
    },
  };
}

async function turnOn(client: pg.PoolClient, generation: number): Promise<WritingTurn> {
  const ask = <Row extends pg.QueryResultRow>(text: string, values: readonly unknown[]) =>
    client.query<Row>(named(text, values));
  return {
    end: await readEnd(ask, generation),
    waiting: (after, limit, except) => readWaiting(ask, { after, limit, except }),
    async append(entries, done) {
      if (entries.length > 0) {
        const columns = [
          entries.map(({ index }) => index),
          entries.map(({ type }) => type),
          entries.map(({ ref }) => ref),
          entries.map(({ entry }) => entry),
        ];
        await ask(APPEND, [generation, ...columns]);
      }
      await ask(TAKE, [done]);
    },
    async publish({ tiles, size, root }, note) {
      const columns = [tiles.map(({ level }) => level), tiles.map(({ n }) => n), tiles.map(({ hashes }) => hashes)];
      await ask(GROW, [generation, ...columns.map((column) => column.map(bytesOf))]);
      await ask(CHECKPOINT, [generation, size, bytesOf(root), note]);
    },
  };
}

/** The driver writes a Buffer as `bytea`, and other arrays of bytes as something else. */
const bytesOf = <T>(value: T): T | Buffer => (value instanceof Uint8Array ? Buffer.from(value) : value);

type Ask = <Row extends pg.QueryResultRow>(text: string, values: readonly unknown[]) => Promise<pg.QueryResult<Row>>;

async function readEnd(ask: Ask, generation: number): Promise<TreeEnd> {
  const [row] = (await ask<EndColumns>(END, [generation])).rows;
  if (row === undefined) throw new Error("the end of the log has no row");
  const size = Number(row.size ?? 0);
  const partial = LEVELS.map((level) => ({ level, n: Math.floor(size / 256 ** (level + 1)) })).filter(
    ({ level, n }) => tileWidth(size, level, n) > 0,
  );
  const { rows } = await ask<{ level: number; hashes: Buffer }>(EDGE, [
    generation,
    partial.map(({ level }) => level),
    partial.map(({ n }) => n),
  ]);
  const edge = new Map(rows.map(({ level, hashes }) => [level, hashes]));
  const { root, at, server } = row;
  return { size, root, at, edge, age: row.age ?? Number.POSITIVE_INFINITY, server };
}
