import { spawn } from "node:child_process";
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { USDC_ABI } from "../../scripts/embedded/usdc.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { forFile } from "../support/for-file.ts";
import { isAlive, type Launched, launchIndexerOf } from "../support/indexer/launched.ts";
import { createDatabase, freshDatabase } from "../support/service/database.ts";
import { bareEnvironment } from "../support/service/environment.ts";
import { SERVICE, WALLETS } from "./history.ts";

/** The sessions of indexers that hold a lock, and the connection names of Ponders. */
async function sessions(db: pg.Pool): Promise<{ readonly holders: string[]; readonly writers: string[] }> {
  const { rows } = await db.query<{ name: string }>(
    `select distinct application_name as name from pg_stat_activity
      where datname = current_database() and application_name ~ '^live_[0-9a-f]{8}_\\d+ [0-9a-f]{12}$'`,
  );
  const held = await db.query<{ name: string }>(
    `select application_name as name from pg_locks join pg_stat_activity using (pid)
      where locktype = 'advisory' and granted and datname = current_database() and application_name ^@ 'indexer '`,
  );
  return { holders: held.rows.map(({ name }) => name), writers: rows.map(({ name }) => name) };
}

const holderOf = (name: string) => name.split(" ")[1] ?? "";

/** Expects, until `work` has settled, that two Ponders never write simultaneously. */
async function watching<T>(db: pg.Pool, work: Promise<T>): Promise<T> {
  let isOver = false;
  const watch = (async () => {
    for (; !isOver; await sleep(50)) {
      const ready = await db.query(
        `select application_name as name from pg_stat_activity
          where datname = current_database() and application_name ~ '^live_' and state <> 'idle'`,
      );
      expect(new Set(ready.rows.map(({ name }) => name)).size).toBeLessThanOrEqual(1);
    }
  })();
  const result = await work.finally(() => {
    isOver = true;
  });
  await watch;
  return result;
}

// Two launchers with their Ponders on one index. After any stop, end, or lost connection, exactly one writes, and the
// other takes over immediately when it can. Each test continues from the previous one.

vi.setConfig({ testTimeout: 240_000 });
/** Longer than the 25 seconds for which Ponder respects another Ponder's last heartbeat. */
const STOPPED_MS = 30_000;
const WAITS = "another indexer has the index; waiting until it ends";
const chain = await forFile(startTestChain({ mining: "manual" }));
const database = await freshDatabase();
const db = await forFile(new pg.Pool({ connectionString: database.ownerUrl, max: 2 }));

const launch = () => forFile(launchIndexerOf({ chain, database }));

/** Mines a block and waits until the index has it. */
async function follows(): Promise<void> {
  await chain.mine();
  const head = Number(await chain.client.getBlockNumber());
  const position = async () => (await db.query("select block::int from live.position")).rows[0]?.block;
  await expect.poll(position, { timeout: 30_000 }).toBe(head);
}

/**
 * Waits until the launcher logs once more that the index is ready. Its Ponder must not have waited for another one's
 * lock.
 */
async function untilReady(launched: Launched, times: number): Promise<void> {
  await watching(db, launched.untilLogged("index ready", times));
  expect(launched.logged("Schema is locked by a different Ponder app")).toEqual([]);
}

await chain.mine(3);
const first = await launch();
await first.untilLogged("index ready");
const second = await launch();
await second.untilLogged(WAITS);

test("One of two launchers has the index, and only its Ponder is connected to write", async () => {
  await follows();
  const { holders, writers } = await sessions(db);
  expect([holders.length, writers.map(holderOf)]).toEqual([1, holders.map(holderOf)]);
  expect(second.logged("ponder started")).toEqual([]);
});

test("A launcher that is stopped for half a minute keeps the lock, and only its Ponder writes", async () => {
  const before = (await sessions(db)).holders;
  first.kill("SIGSTOP");
  const halfAMinute = async () => {
    for (const end = performance.now() + STOPPED_MS; performance.now() < end; await sleep(2_000)) await follows();
  };
  await watching(db, halfAMinute());
  first.kill("SIGCONT");
  await follows();
  const { holders, writers } = await sessions(db);
  expect([holders, writers.map(holderOf)]).toEqual([before, holders.map(holderOf)]);
  expect(second.logged("ponder started")).toEqual([]);
});

test("A Ponder that is stopped and resumed continues to write, because its launcher has the lock", async () => {
  process.kill(first.ponderPid(), "SIGSTOP");
  await chain.mine();
  await sleep(2_000);
  process.kill(first.ponderPid(), "SIGCONT");
  await follows();
  expect(second.logged("ponder started")).toEqual([]);
});

test("A launcher whose connection ends stops its Ponder, and one of the two launchers continues", async () => {
  const [holder = ""] = (await sessions(db)).holders;
  const ponder = first.ponderPid();
  const starts = () => [first, second].flatMap((launched) => launched.logged("index ready")).length;
  const before = starts();
  await watching(
    db,
    (async () => {
      await db.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1", [holder]);
      await expect.poll(() => isAlive(ponder)).toBe(false);
      await expect.poll(starts, { timeout: 120_000 }).toBe(before + 1);
      await follows();
    })(),
  );
  expect((await sessions(db)).holders).toHaveLength(1);
});

/** The launcher that has the index, and the one that waits. */
const inTurn = (): readonly [Launched, Launched] => (isAlive(first.ponderPid()) ? [first, second] : [second, first]);

test("A stopped launcher and Ponder that lose the lock write nothing after they resume", async () => {
  const [holder = ""] = (await sessions(db)).holders;
  const [stopped, waiting] = inTurn();
  const [ponder, waited] = [stopped.ponderPid(), stopped.logged(WAITS).length];
  const ready = waiting.logged("index ready").length;
  stopped.kill("SIGSTOP");
  process.kill(ponder, "SIGSTOP");
  await db.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1", [holder]);
  await untilReady(waiting, ready + 1);
  await follows();
  process.kill(ponder, "SIGCONT");
  await watching(db, expect.poll(() => isAlive(ponder), { timeout: 10_000 }).toBe(false));
  stopped.kill("SIGCONT");
  await watching(db, stopped.untilLogged(WAITS, waited + 1));
  await follows();
  const { holders, writers } = await sessions(db);
  expect([holders.length, writers.map(holderOf)]).toEqual([1, holders.map(holderOf)]);
  expect(holders).not.toContain(holder);
});

test("A killed launcher leaves no Ponder, and the waiting one takes over immediately", async () => {
  const [killed, waiting] = inTurn();
  const [ponder, ready] = [killed.ponderPid(), waiting.logged("index ready").length];
  killed.kill("SIGKILL");
  await untilReady(waiting, ready + 1);
  expect(isAlive(ponder)).toBe(false);
  await follows();
});

describe("without the launcher", async () => {
  vi.setConfig({ testTimeout: 120_000 });

  const chain = await forFile(startTestChain());
  const { ownerUrl } = await createDatabase();
  const db = await forFile(new pg.Pool({ connectionString: ownerUrl, max: 1 }));

  test("In the indexer's folder, npx ponder start indexes a chain with only Ponder's variables and publishes views", async () => {
    const [account, to] = [WALLETS[1], WALLETS[2]] as const;
    const call = { address: chain.network.usdc.address, abi: USDC_ABI, functionName: "transfer" } as const;
    await chain.client.writeContract({ ...call, args: [to ?? SERVICE, 5n], account: account ?? SERVICE });
    const ponder = spawn(resolve("node_modules/.bin/ponder"), ["start"], {
      cwd: "indexer",
      env: {
        ...bareEnvironment(),
        ...{ DATABASE_URL: ownerUrl, DATABASE_SCHEMA: "mine", DATABASE_VIEWS_SCHEMA: "shown", INDEX_SCOPE: "full" },
        ...{ PONDER_RPC_URL_8453: Array.from({ length: 25 }, () => chain.rpcUrl).join(), PORT: "0" },
      },
      stdio: ["ignore", "ignore", "inherit"],
    });
    onTestFinished(() => void ponder.kill("SIGKILL"));
    const shown = async () => {
      const there = await db.query("select to_regclass('shown.coverage') is not null as there");
      if (there.rows[0]?.there !== true) return null;
      const { rows } = await db.query(
        "select scope, first_block, (select count(*)::int from shown.wallet_day) as days from shown.coverage, shown.position",
      );
      return rows[0] ?? null;
    };
    await expect.poll(shown, { timeout: 100_000 }).toEqual({ scope: "full", first_block: 0, days: 2 });
  });
});
