import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { expect, test, vi } from "vitest";
import { startTestChain } from "../support/chain/chain.ts";
import { forFile } from "../support/for-file.ts";
import { isAlive, type Launched, launchIndexerOf } from "../support/indexer/launched.ts";
import { freshDatabase } from "../support/service/database.ts";
import { holderOf, sessions, watching } from "./writers.ts";

// Two launchers with their Ponders on one index. Whatever stops, ends or loses its connection, one of them writes, and the other
// one goes on without a pause when it can. The tests go on from each other.

vi.setConfig({ testTimeout: 120_000 });
const WAITS = "another indexer has the index; waiting for its end";
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

/** Until the launcher says once more that the index is ready, its Ponder having waited for no other one's lock. */
async function untilReady(launched: Launched, times: number): Promise<void> {
  await watching(db, launched.saying("index ready", times));
  expect(launched.said("Schema is locked by a different Ponder app")).toEqual([]);
}

await chain.mine(3);
const first = await launch();
await first.saying("index ready");
const second = await launch();
await second.saying(WAITS);

test("of two launchers one has the index; its Ponder alone is connected to write", async () => {
  await follows();
  const { holders, writers } = await sessions(db);
  expect([holders.length, writers.map(holderOf)]).toEqual([1, holders.map(holderOf)]);
  expect(second.said("ponder started")).toEqual([]);
});

test("a Ponder that is stopped and goes on, goes on writing: its launcher has the lock", async () => {
  process.kill(first.ponderPid(), "SIGSTOP");
  await chain.mine();
  await sleep(2_000);
  process.kill(first.ponderPid(), "SIGCONT");
  await follows();
  expect(second.said("ponder started")).toEqual([]);
});

test("a launcher whose connection ends, ends its Ponder, and one of the two goes on", async () => {
  const [holder = ""] = (await sessions(db)).holders;
  const ponder = first.ponderPid();
  await watching(
    db,
    (async () => {
      await db.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1", [holder]);
      await expect.poll(() => isAlive(ponder)).toBe(false);
      await follows();
    })(),
  );
  expect((await sessions(db)).holders).toHaveLength(1);
});

/** The launcher that has the index, and the one that waits. */
const inTurn = (): readonly [Launched, Launched] => (isAlive(first.ponderPid()) ? [first, second] : [second, first]);

test("a launcher and its Ponder that are stopped, and lose the lock, write nothing when they go on", async () => {
  const [holder = ""] = (await sessions(db)).holders;
  const [stopped, waiting] = inTurn();
  const [ponder, waited] = [stopped.ponderPid(), stopped.said(WAITS).length];
  const ready = waiting.said("index ready").length;
  stopped.kill("SIGSTOP");
  process.kill(ponder, "SIGSTOP");
  await db.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1", [holder]);
  await untilReady(waiting, ready + 1);
  await follows();
  process.kill(ponder, "SIGCONT");
  await watching(db, expect.poll(() => isAlive(ponder), { timeout: 10_000 }).toBe(false));
  stopped.kill("SIGCONT");
  await watching(db, stopped.saying(WAITS, waited + 1));
  await follows();
  const { holders, writers } = await sessions(db);
  expect([holders.length, writers.map(holderOf)]).toEqual([1, holders.map(holderOf)]);
  expect(holders).not.toContain(holder);
});

test("a launcher that is killed leaves no Ponder, and the one that waits goes on without a pause", async () => {
  const [killed, waiting] = inTurn();
  const [ponder, ready] = [killed.ponderPid(), waiting.said("index ready").length];
  killed.kill("SIGKILL");
  await untilReady(waiting, ready + 1);
  expect(isAlive(ponder)).toBe(false);
  await follows();
});
