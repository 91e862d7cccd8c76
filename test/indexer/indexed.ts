import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import pg from "pg";
import type { Address } from "viem";
import { expect } from "vitest";
import { type ActivityIndex, createActivityIndex } from "../../api/platform/index/activity.ts";
import { createScoreIndex } from "../../api/score/index-store.ts";
import type { Scope } from "../../indexer/ledger.ts";
import { prune } from "../../indexer/prune.ts";
import type { TestChain } from "../support/chain/chain.ts";
import { type Launched, launchIndexer } from "../support/indexer/launched.ts";
import { freshDatabase, type TestDatabase } from "../support/service/database.ts";
import { bareEnvironment } from "../support/service/environment.ts";
import { waitUntil } from "../support/wait-until.ts";
import { SERVICE, WALLETS } from "./history.ts";
import { type Fact, type Own, readFacts, recount } from "./recount.ts";
import { readTables, recountReading, recountTables } from "./score-recount.ts";

export const DAY_MS = 86_400_000;
export const CATCH_UP = { timeout: 45_000, interval: 50 };

/** An index under test, with the program that maintains it. */
export interface Indexed {
  readonly scope: Scope;
  readonly database: TestDatabase;
  readonly pool: pg.Pool;
  readonly index: ActivityIndex;
  /** The addresses that it excludes. */
  own: Own;
  launched: Launched;
}

export const launch = (indexed: Pick<Indexed, "scope" | "database">, on: Pick<TestChain, "rpcUrl">, more = {}) =>
  launchIndexer({ ...environmentOf(indexed, on), ...more });

const environmentOf = ({ scope, database }: Pick<Indexed, "scope" | "database">, on: Pick<TestChain, "rpcUrl">) => ({
  DATABASE_URL: database.indexerUrl,
  BASE_RPC_URL: on.rpcUrl,
  PAY_TO_ADDRESS: SERVICE,
  INDEX_SCOPE: scope,
});

/** Returns the output of `npm run index:drop`. */
export async function runDrop(indexed: Indexed, chain: TestChain, more = {}): Promise<string> {
  const env = { ...bareEnvironment(), ...environmentOf(indexed, chain), ...more };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ["scripts/index-drop.ts"], { env }).catch(
    (failed: { stdout: string; stderr: string }) => failed,
  );
  return stdout + stderr;
}

/** The indexer's schemas in the database. */
export async function schemasOf({ database }: Indexed): Promise<readonly string[]> {
  const db = new pg.Client({ connectionString: database.ownerUrl });
  await db.connect();
  const made = "^(live_.*|ponder_sync|indexer)$";
  const { rows } = await db.query("select nspname as name from pg_namespace where nspname ~ $1 order by 1", [made]);
  await db.end();
  return rows.map(({ name }) => name);
}

/** Prunes Ponder's copy of the chain almost up to the final block. Returns the number of deleted rows. */
export async function pruneClosely({ database }: Pick<Indexed, "database">): Promise<number> {
  const db = new pg.Pool({ connectionString: database.ownerUrl, max: 1 });
  const { rows } = await prune(db, 5);
  await db.end();
  return rows;
}

/** Makes an index look as if it had not been written for over an hour. */
export async function ageIndex({ database }: Pick<Indexed, "database">, schema: string): Promise<void> {
  const db = new pg.Client({ connectionString: database.ownerUrl });
  await db.connect();
  await db.query(`update ${schema}._ponder_meta set value = value || '{"heartbeat_at": 0}'`);
  await db.end();
}

/** Starts an index of the chain in a new database. */
export async function begin(scope: Indexed["scope"], chain: TestChain): Promise<Indexed> {
  const database = await freshDatabase();
  const pool = new pg.Pool({ connectionString: database.apiUrl, max: 4 });
  const index = createActivityIndex(pool, { viewsSchema: "live", maxLagMs: Number.POSITIVE_INFINITY });
  return { scope, database, pool, index, own: { [SERVICE]: 0 }, launched: launch({ scope, database }, chain) };
}

export const headOf = async (of: TestChain) => Number(await of.client.getBlockNumber());
export const nowOf = async (of: TestChain) => new Date(Number((await of.client.getBlock()).timestamp) * 1000);

export async function caughtUp({ index }: Indexed, of: TestChain): Promise<void> {
  const head = await headOf(of);
  const there = await waitUntil(async () => (await index.position())?.block === head, CATCH_UP.timeout);
  if (!there) throw new Error(`The index did not reach block ${head}: ${JSON.stringify(await index.position())}`);
}

/** Returns the milliseconds until each index reports a payment to the wallet. */
export async function untilPaid(all: readonly Indexed[], wallet: Address, of: TestChain): Promise<number> {
  const began = performance.now();
  const now = await nowOf(of);
  for (const { index } of all) {
    const payers = async () => (await index.activity(wallet, now))?.distinctCounterparties;
    await expect.poll(payers, { ...CATCH_UP, interval: 20 }).toBe(1);
  }
  return performance.now() - began;
}

/** Expects every row, and every wallet's activity at every moment, to equal a recount from raw logs. */
export async function expectRecount(
  { index, pool, scope, own }: Indexed,
  moments: readonly Date[],
  of: TestChain,
): Promise<void> {
  const facts = await readFacts(of, [], own);
  expect(await readTables(pool), scope).toEqual(recountTables(facts, scope));
  await expectReadings({ pool, scope }, facts, { wallets: WALLETS, head: await headOf(of), now: await nowOf(of) });
  for (const now of moments) await expectActivity({ index, scope }, facts, { wallets: WALLETS, now });
}

/** Returns an index's answer. On a busy machine, the index may first be unavailable for a second. */
export async function answerOf<T>(ask: () => Promise<T | null>): Promise<T | null> {
  for (const deadline = Date.now() + CATCH_UP.timeout; ; await sleep(CATCH_UP.interval)) {
    const answer = await ask();
    if (answer !== null || Date.now() > deadline) return answer;
  }
}

interface Asked {
  readonly wallets: readonly Address[];
  readonly now: Date;
}

/** Expects each wallet's activity to equal a recount from raw logs. */
export async function expectActivity(
  { index, scope }: Pick<Indexed, "index" | "scope">,
  facts: readonly Fact[],
  { wallets, now }: Asked,
): Promise<void> {
  const ask = async (wallet: Address) => [wallet, await answerOf(() => index.activity(wallet, now))];
  const answers = await Promise.all(wallets.map(ask));
  const expected = wallets.map((wallet) => [
    wallet,
    expect.objectContaining({ scope, ...recount(facts, wallet, { now, scope }) }),
  ]);
  expect(answers, `${scope} at ${now.toISOString()}`).toEqual(expected);
}

/**
 * Expects each wallet's facts for the score to equal a recount from raw logs, also after the last days have left the
 * window.
 */
export async function expectReadings(
  { pool, scope }: Pick<Indexed, "pool" | "scope">,
  facts: readonly Fact[],
  { wallets, head, now }: Asked & { readonly head: number },
): Promise<void> {
  const index = createScoreIndex(pool, { viewsSchema: "live", maxLagMs: Number.POSITIVE_INFINITY });
  for (const days of [0, 40, 89, 90]) {
    const asOf = new Date(now.getTime() + days * DAY_MS);
    const readings = await answerOf(() => index.read(wallets, asOf));
    const found = readings?.map(({ chain: { payees, ...rest }, ...reading }) => ({
      ...reading,
      chain: { ...rest, payees: payees.toSorted((a, b) => (a.payee < b.payee ? -1 : 1)) },
    }));
    const expected = wallets.map((wallet) => ({
      as_of: asOf.toISOString(),
      as_of_block: head,
      chain: expect.objectContaining({ scope, ...recountReading(facts, wallet, { asOf, scope }) }),
    }));
    expect(found, `${scope}, ${days} days on`).toEqual(expected);
  }
}
