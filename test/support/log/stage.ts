import { randomBytes, sign } from "node:crypto";
import type pg from "pg";
import { certificateEntries } from "../../../api/certificates/store.ts";
import { createDocuments } from "../../../api/log/entry.ts";
import { createLog, type LogParts } from "../../../api/log/integrate.ts";
import { logOrigin } from "../../../api/log/log-paths.ts";
import { createLogStore, type LogStore } from "../../../api/log/store.ts";
import { createLogWriter } from "../../../api/log/write-store.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { createSigner } from "../../../api/platform/signing/document.ts";
import { signingKey } from "../../../api/platform/signing/keys.ts";
import { sellerEntries } from "../../../api/sellers/published/store.ts";
import { parseCheckpoint } from "../../../packages/verifier/src/tlog/checkpoint.ts";
import { verifyNote } from "../../../packages/verifier/src/tlog/note.ts";
import { consistencyProof, verifyConsistency } from "../../../packages/verifier/src/tlog/tree.ts";
import { NOTE_TYPE, type VerifierKey, verifierKey } from "../../../packages/verifier/src/tlog/verifier-key.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { boardSeeder } from "../board.ts";
import { forFile } from "../for-file.ts";
import { connectOwner, freshDatabase, type TestDatabase } from "../service/database.ts";
import { naiveRoot } from "./memory-log.ts";

/** A database with a log, and its records. */
export async function logStage(plan: LogPlan = {}) {
  const database = await freshDatabase();
  const [pool, owner, seeds] = await Promise.all([
    forFile(connect(database.apiUrl)),
    forFile(await connectOwner(database)),
    forFile(boardSeeder(database)),
  ]);
  const log = await logOn(pool, plan);
  let wallet = 0;
  return {
    database,
    pool,
    owner,
    seeds,
    log,
    add: (count: number) =>
      seeds.add(...Array.from({ length: count }, () => ({ wallet: ++wallet, issuedAt: new Date() }))),
    /** Integrates immediately, at any age of the newest checkpoint. */
    async integrate(by = log): Promise<number> {
      await owner.query(CHECKPOINTS_AGE);
      return by.integrate();
    },
    audit: () => auditLog({ owner, store: log.store, verifier: log.verifier }),
    queued: async () => Number((await owner.query("SELECT count(*) FROM log_pending")).rows[0].count),
  };
}

export const writerOn = (pool: pg.Pool) => createLogWriter(pool, { ...certificateEntries, ...sellerEntries });

const BASE_URL = "https://trust.example";

/** The parts of a log that a test decides. Its clock stops unless the test moves it. */
export type LogPlan = Partial<
  Pick<LogParts, "generation" | "heads" | "danger" | "elapsedMs" | "announced" | "writer">
> & {
  /** The byte that the key repeats 32 times. */
  readonly key?: number;
  /** Default https://trust.example. */
  readonly baseUrl?: string;
  /** The origin, as in LOG_ORIGIN. */
  readonly origin?: string;
};

/** The log's writer on a database, as in a process of the service. */
export async function logOn(pool: pg.Pool, { generation = 1, key = 7, baseUrl = BASE_URL, ...plan }: LogPlan = {}) {
  const origin = plan.origin ?? logOrigin(baseUrl, generation);
  const own = await signingKey(Buffer.alloc(32, key));
  const verifier = verifierKey(origin, NOTE_TYPE.ed25519, Buffer.from(own.publicJwk.x, "base64url"));
  const signer = createSigner(await signingKey(Buffer.alloc(32, 8)), "did:web:trust.example");
  const announced = plan.announced ?? [];
  const store = createLogStore(pool);
  const errors: string[] = [];
  const log = createLog({
    heads: { sources: 0, ask: async () => ({ heads: [], silent: [] }) },
    danger: async () => null,
    elapsedMs: () => 0,
    writer: writerOn(pool),
    ...plan,
    announced,
    generation,
    origin,
    vkey: verifier.vkey,
    signer: { key: verifier, sign: (message) => sign(null, message, own.privateKey) },
    store,
    documentOf: createDocuments({ signer, baseUrl }),
    now: () => new Date(),
    log: { info: () => undefined, error: (facts, message) => errors.push(`${message} ${JSON.stringify(facts)}`) },
  });
  return { ...log, store, origin, verifier, errors };
}

/** Ages the newest checkpoint, so that another one may be signed immediately. */
export const CHECKPOINTS_AGE = `ALTER TABLE log_checkpoint DISABLE TRIGGER permanent;
  UPDATE log_checkpoint SET at = at - interval '2 s';
  ALTER TABLE log_checkpoint ENABLE ALWAYS TRIGGER permanent`;

interface Audited {
  readonly owner: Pick<pg.Client, "query">;
  readonly store: LogStore;
  readonly verifier: VerifierKey;
  readonly generation?: number;
}

/**
 * The violations of a log's invariants, empty if there are none: indices without gaps, each entry once and with its own
 * index, every checkpoint signed and with the root of its entries, and each one continued by the next.
 */
export async function auditLog({ owner, store, verifier, generation = 1 }: Audited): Promise<readonly string[]> {
  const faults: string[] = [];
  const { rows: entries } = await owner.query<{ idx: string; type: string; ref: string; entry: Buffer }>(
    "SELECT idx, type, ref, entry FROM log_entry WHERE generation = $1 ORDER BY idx",
    [generation],
  );
  for (const [at, { idx, type, ref, entry }] of entries.entries()) {
    const logged = JSON.parse(entry.toString());
    if (Number(idx) !== at) faults.push(`entry ${idx} is in place ${at}`);
    if (logged.index !== at || logged.type !== type || logged.id !== ref)
      faults.push(`entry ${at} has another content`);
  }
  const names = entries.map(({ type, ref }) => `${type} ${ref}`);
  if (new Set(names).size < names.length) faults.push("a record is in the log twice");
  const { rows: checkpoints } = await owner.query<{ size: string; root: Buffer; note: string }>(
    "SELECT size, root, note FROM log_checkpoint WHERE generation = $1 ORDER BY size",
    [generation],
  );
  if (Number(checkpoints.at(-1)?.size ?? 0) !== entries.length) faults.push("the newest checkpoint lacks entries");
  for (const [at, { size, root, note }] of checkpoints.entries()) {
    const { text } = await verifyNote(note, [verifier]);
    const checkpoint = parseCheckpoint(text);
    if (checkpoint.size !== Number(size) || !root.equals(checkpoint.root))
      faults.push(`checkpoint ${size} has another content`);
    if (!root.equals(naiveRoot(entries.slice(0, Number(size)).map(({ entry }) => entry))))
      faults.push(`checkpoint ${size} has another root than its entries`);
    const next = checkpoints[at + 1];
    if (next === undefined) continue;
    const [oldSize, newSize] = [Number(size), Number(next.size)];
    const proof = await consistencyProof(oldSize, newSize, (ids) => store.tiles(generation, ids));
    verifyConsistency({ oldSize, oldRoot: root, newSize, newRoot: next.root, proof });
  }
  return faults;
}

/** A backup: the database copied under another name. The original must have no connections. */
export async function copyOf({ ownerUrl, apiUrl, indexerUrl }: TestDatabase): Promise<TestDatabase> {
  const name = `restored_${randomBytes(6).toString("hex")}`;
  const other = (url: string, database: string) => url.replace(/[^/]+$/, database);
  const original = ownerUrl.slice(ownerUrl.lastIndexOf("/") + 1);
  await withClient(other(ownerUrl, "postgres"), (client) =>
    client.query(`CREATE DATABASE ${name} TEMPLATE ${original} STRATEGY file_copy`),
  );
  return { ownerUrl: other(ownerUrl, name), apiUrl: other(apiUrl, name), indexerUrl: other(indexerUrl, name) };
}

/** Drops a pool's idle connections, as a broken network does. */
export async function endConnections(pool: pg.Pool): Promise<void> {
  const clients = await Promise.all(Array.from({ length: pool.totalCount }, () => pool.connect()));
  for (const client of clients) client.release(true);
}

/** A statement that inserts a certificate without a payment, on any connection. */
export const certificateInsert = (id: string): string => `INSERT INTO certificate
    (id, product, test_version, result, level, wallet, checks, detected, issued_at, valid_until, chain, asset, nonce, tx, block_number, amount, pay_to)
  VALUES ('${id}', 'basic', 1, 'pass', 'Conformant', decode(repeat('01', 20), 'hex'), '{"paid":"pass"}', '{}', now(),
    now() + interval '30 days', 8453, decode(repeat('02', 20), 'hex'), decode(repeat('${id}', 4), 'hex'),
    decode(repeat('03', 32), 'hex'), 1, 250000, decode(repeat('04', 20), 'hex'))`;
