import type pg from "pg";
import type { EntryType } from "../../packages/verifier/src/tlog/entry-types.ts";
import type { Edge, Growth } from "../../packages/verifier/src/tlog/grow.ts";
import { tileWidth } from "../../packages/verifier/src/tlog/tile.ts";
import { bytes, inTransaction, named } from "../platform/db/connection.ts";
import type { Announced, Recorded, Waiting } from "./entry.ts";
import type { Generation } from "./store.ts";
import { nextKeyId } from "./trust.ts";

/** Never skips rows by number: a transaction that commits late can have a lower number than rows already in the log. */
const WAITING = `SELECT p.seq, p.type, p.ref, p.at, p.members, e.ref IS NOT NULL AS is_logged
  FROM (SELECT seq, type, ref, at, members FROM log_pending WHERE seq > $1 AND seq <> ALL($3::bigint[]) ORDER BY seq LIMIT $2) AS p
  LEFT JOIN log_entry AS e ON e.type = p.type AND e.ref = p.ref ORDER BY p.seq`;

interface QueueColumns {
  seq: string;
  type: EntryType;
  ref: string;
  at: Date;
  members: Announced["members"] | null;
  is_logged: boolean;
}

const VERDICTS = "SELECT id, document FROM verdict WHERE id = ANY($1)";
const ofPayments = (table: string) =>
  `SELECT '0x' || encode(payment, 'hex') AS id, document FROM ${table} WHERE payment = ANY($1)`;

export type RecordsByRef = ReadonlyMap<string, Recorded>;

/** Reads the records of one type, many in one statement. */
export type EntryReader = (ask: Ask, refs: readonly string[]) => Promise<RecordsByRef>;

/** The readers of record types that are not stored as signed documents. */
export type EntryReaders = Partial<Record<EntryType, EntryReader>>;

const DOCUMENTS: EntryReaders = {
  verdict: (ask, refs) => signed(ask, VERDICTS, refs),
  correction: (ask, refs) => signed(ask, VERDICTS, refs),
  evaluation: (ask, refs) => signed(ask, ofPayments("escrow_evaluation"), refs.map(bytes)),
  contest_answer: (ask, refs) => signed(ask, ofPayments("escrow_contest_answer"), refs.map(bytes)),
};

async function signed(ask: Ask, text: string, keys: readonly unknown[]): Promise<RecordsByRef> {
  const { rows } = await ask<{ id: string; document: string }>(text, [keys]);
  return new Map(rows.map(({ id, document }) => [id, { type: "signed", document }]));
}

/** Returns the oldest rows of the queue, with their records. */
async function readWaiting(
  { ask, readers }: { readonly ask: Ask; readonly readers: EntryReaders },
  { after, limit, except }: { readonly after: string; readonly limit: number; readonly except: readonly string[] },
): Promise<readonly Queued[]> {
  const { rows } = await ask<QueueColumns>(WAITING, [after, limit, except]);
  const found = new Map<EntryType, RecordsByRef>();
  for (const type of new Set(rows.map((row) => row.type))) {
    const refs = rows.filter((row) => row.type === type && !row.is_logged).map(({ ref }) => ref);
    const read = DOCUMENTS[type] ?? readers[type];
    found.set(type, read === undefined ? new Map() : await read(ask, refs));
  }
  return rows.map(({ is_logged: isLogged, members, ...row }) => ({
    ...row,
    isLogged,
    recorded: isLogged ? null : (found.get(row.type)?.get(row.ref) ?? unread(row.type, members)),
  }));
}

/** Returns the record of an entry that needs no row. */
function unread(type: EntryType, members: QueueColumns["members"]): Recorded | null {
  if (type === "reversal") return { type: "reversal" };
  return members === null ? null : { type: "announced", members };
}

/** An arbitrary number. The process that writes the log holds this lock. */
const LOCK = 7_402_403;

const WAIT = { statement: { name: "log-wait", text: `SELECT pg_advisory_xact_lock(${LOCK})` }, answer: () => null };
const BEGIN = "INSERT INTO log (generation, origin, vkey) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";

const TRY = { name: "log-try", text: `SELECT pg_try_advisory_xact_lock(${LOCK}) AS mine` };

/** A restored database has a different table oid, even if the server was not restarted. */
const SERVER = `extract(epoch FROM pg_postmaster_start_time())::text || ' ' || (
    SELECT oid FROM pg_database WHERE datname = current_database()) || ' ' || 'log_checkpoint'::regclass::oid`;

const VOUCH = `INSERT INTO log_vouched AS before (generation, server) VALUES ($1, $2)
  ON CONFLICT (generation) DO UPDATE SET server = excluded.server, at = now() WHERE before.server <> excluded.server`;
const VOUCHED = "SELECT FROM log_vouched WHERE generation = $1 AND server = $2";

/** Runs after the lock is taken, so that it sees everything that the previous turn committed. */
const END = `SELECT c.size, c.root, c.at, extract(epoch FROM clock_timestamp() - c.at)::float8 AS age, ${SERVER} AS server,
    EXISTS (SELECT FROM log WHERE generation > $1) AS has_ended
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

const ANNOUNCE = `INSERT INTO log_pending (type, ref, members)
  SELECT type, ref, members::jsonb FROM unnest($1::text[], $2::text[], $3::text[])
    WITH ORDINALITY AS announced (type, ref, members, place)
  WHERE NOT EXISTS (SELECT FROM log_entry WHERE log_entry.type = announced.type AND log_entry.ref = announced.ref)
  ORDER BY place ON CONFLICT DO NOTHING`;

const KEYS = `SELECT ref FROM (
    SELECT ref, 0 AS is_queued, generation, idx AS place FROM log_entry WHERE type = 'signing_key'
    UNION ALL SELECT ref, 1, 0, seq FROM log_pending WHERE type = 'signing_key'
  ) AS announced ORDER BY is_queued, generation, place`;

/** If a mark and a certificate commit concurrently, neither trigger sees the other row, so no reversal is queued. */
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
  has_ended: boolean;
}

/** Levels of a tree whose size is a safe integer. */
const LEVELS = [0, 1, 2, 3, 4, 5, 6];

export type LogWriter = ReturnType<typeof createLogWriter>;

/** Writes the log. Any number of processes may try; one has the turn. */
export function createLogWriter(pool: pg.Pool, readers: EntryReaders) {
  return {
    /** Returns whether any row is queued, other than these. */
    async hasWaiting(except: readonly string[]): Promise<boolean> {
      const text = "SELECT EXISTS (SELECT FROM log_pending WHERE seq <> ALL($1::bigint[])) AS waits";
      return (await pool.query<{ waits: boolean }>(named(text, [except]))).rows[0]?.waits === true;
    },

    /** Identifies the run of the database server. It changes with a restart, a restore, or a different server. */
    async server(): Promise<string> {
      const { rows } = await pool.query<{ server: string }>(named(`SELECT ${SERVER} AS server`, []));
      return rows[0]?.server ?? "";
    },

    /** Records, for all processes, that the log was checked on this server and is complete. */
    async vouch(generation: number, server: string): Promise<void> {
      await pool.query(named(VOUCH, [generation, server]));
    },

    /** Whether the log was checked on this server. */
    isVouchedFor: async (generation: number, server: string): Promise<boolean> =>
      (await pool.query(named(VOUCHED, [generation, server]))).rowCount === 1,

    /** Runs the work in a turn, or returns null if another process has it. If it rejects, the transaction may not have committed. */
    inTurn: <T>(generation: number, work: (turn: WritingTurn) => Promise<T>): Promise<T | null> =>
      inTransaction(
        pool,
        async (client, [isMine]) => (isMine ? work(await turnOn(client, { generation, readers })) : null),
        [{ statement: TRY, answer: ({ rows }) => rows[0]?.mine === true }] as const,
      ),

    /** Adds the generation unless it exists, and returns the stored one. After that, no turn of an earlier one can write. */
    async begin({ generation, origin, vkey }: NewGeneration): Promise<NewGeneration> {
      // After this lock, any turn of the previous log is over or will see that the log has ended.
      await inTransaction(pool, (client) => client.query(named(BEGIN, [generation, origin, vkey])), [WAIT]);
      const { rows } = await pool.query<NewGeneration>(
        "SELECT generation, origin, vkey FROM log WHERE generation = $1 OR origin = $2 ORDER BY generation = $1 DESC",
        [generation, origin],
      );
      const [found] = rows;
      if (found === undefined) throw new Error("the log's generation was not added and does not exist");
      return found;
    },

    /** Queues facts that are not queued or logged yet. A signing key is queued again if it returns after another one. */
    announce: (announced: readonly Announced[]): Promise<void> =>
      inTransaction(
        pool,
        async (client) => {
          const { rows } = await client.query<{ ref: string }>(named(KEYS, []));
          const news = newOf(
            announced,
            rows.map(({ ref }) => ref),
          );
          const columns = [
            news.map(({ type }) => type),
            news.map(({ ref }) => ref),
            news.map(({ members }) => JSON.stringify(members)),
          ];
          await client.query(named(ANNOUNCE, columns));
        },
        [WAIT],
      ),

    /** Queues reversals that no trigger could see. */
    async queueMissed(): Promise<void> {
      await pool.query(MISSED);
    },
  };
}

type NewGeneration = Omit<Generation, "startedAt">;

/** Drops the key that was announced last, and gives a returning key the id of its next entry. */
const newOf = (announced: readonly Announced[], keys: readonly string[]): readonly Announced[] =>
  announced.flatMap((one) => {
    const ref = one.type === "signing_key" ? nextKeyId(one.ref, keys) : one.ref;
    return ref === null ? [] : [{ ...one, ref }];
  });

export type WritingTurn = Awaited<ReturnType<typeof turnOn>>;

/** One transaction with exclusive access to the log. */
async function turnOn(
  client: pg.PoolClient,
  { generation, readers }: { readonly generation: number; readonly readers: EntryReaders },
) {
  const ask = <Row extends pg.QueryResultRow>(text: string, values: readonly unknown[]) =>
    client.query<Row>(named(text, values));
  return {
    end: await readEnd(ask, generation),
    /** Returns the oldest rows after `after`, in order, with their records. Rows in `except` are left out. */
    waiting: (after: string, limit: number, except: readonly string[]) =>
      readWaiting({ ask, readers }, { after, limit, except }),
    /** Adds entries, and removes rows from the queue. */
    async append(entries: readonly NewEntry[], done: readonly string[]): Promise<void> {
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
    /** Stores the new tiles and the signed checkpoint. This is the last call of a turn. */
    async publish({ tiles, size, root }: Growth, note: string): Promise<void> {
      const columns = [tiles.map(({ level }) => level), tiles.map(({ n }) => n), tiles.map(({ hashes }) => hashes)];
      await ask(GROW, [generation, ...columns.map((column) => column.map(bytesOf))]);
      await ask(CHECKPOINT, [generation, size, bytesOf(root), note]);
    },
  };
}

/** The driver writes only a Buffer as `bytea`. */
const bytesOf = <T>(value: T): T | Buffer => (value instanceof Uint8Array ? Buffer.from(value) : value);

export type Ask = <Row extends pg.QueryResultRow>(
  text: string,
  values: readonly unknown[],
) => Promise<pg.QueryResult<Row>>;

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
  const { root, at, server, has_ended: hasEnded } = row;
  return { size, root, at, edge, age: row.age ?? Number.POSITIVE_INFINITY, server, hasEnded };
}

/** The end of the tree, as a transaction that holds the log's lock sees it. */
export interface TreeEnd {
  readonly size: number;
  /** Null for an empty tree. */
  readonly root: Uint8Array | null;
  readonly at: Date | null;
  readonly edge: Edge;
  /** Seconds since the newest checkpoint, by the database's clock, which may have been set back; infinite if there is none. */
  readonly age: number;
  /** The value of `LogWriter.server`. */
  readonly server: string;
  /** Whether a later generation has begun. */
  readonly hasEnded: boolean;
}

export interface Queued extends Omit<Waiting, "recorded"> {
  readonly seq: string;
  /** Null if the row is already in the log, or its record does not exist. */
  readonly recorded: Waiting["recorded"] | null;
  readonly isLogged: boolean;
}

export interface NewEntry {
  readonly type: EntryType;
  readonly ref: string;
  readonly index: number;
  readonly entry: Uint8Array;
}
