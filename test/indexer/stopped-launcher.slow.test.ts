import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { expect, test, vi } from "vitest";
import { startTestChain } from "../support/chain/chain.ts";
import { forFile } from "../support/for-file.ts";
import { isAlive, launchIndexerOf } from "../support/indexer/launched.ts";
import { freshDatabase } from "../support/service/database.ts";
import { holderOf, sessions, watching } from "./writers.ts";

// Two launchers on one index, of which the first is stopped for a minute. The tests go on from each other.

vi.setConfig({ testTimeout: 240_000 });
const MINUTE_MS = 60_000;
const WAITS = "another indexer has the index; waiting for its end";
const chain = await forFile(startTestChain({ mining: "manual" }));
const database = await freshDatabase();
const db = await forFile(new pg.Pool({ connectionString: database.ownerUrl, max: 2 }));
const launch = () => forFile(launchIndexerOf({ chain, database }));

await chain.mine(3);
const first = await launch();
await first.saying("index ready");
const second = await launch();
await second.saying(WAITS);

/** Mines blocks for a minute, each of which the index has soon. */
async function followsForAMinute(): Promise<void> {
  for (const end = performance.now() + MINUTE_MS; performance.now() < end; await sleep(2_000)) {
    await chain.mine();
    const head = Number(await chain.client.getBlockNumber());
    const position = async () => (await db.query("select block::int from live.position")).rows[0]?.block;
    await expect.poll(position, { timeout: 30_000 }).toBe(head);
  }
}

/** The lock's holder has the only connections to write. */
async function expectOneWriter(): Promise<string> {
  const { holders, writers } = await sessions(db);
  expect([holders.length, writers.map(holderOf)]).toEqual([1, holders.map(holderOf)]);
  return holders[0] ?? "";
}

test("a launcher that is stopped for a minute keeps the lock, and its Ponder alone writes", async () => {
  const before = await expectOneWriter();
  first.kill("SIGSTOP");
  await watching(db, followsForAMinute());
  expect(await expectOneWriter()).toBe(before);
  first.kill("SIGCONT");
  await sleep(2_000);
  expect(await expectOneWriter()).toBe(before);
  expect(second.said("ponder started")).toEqual([]);
});

test("one that also loses its session has lost its Ponder to the other launcher, and waits when it goes on", async () => {
  const [holder, ponder] = [await expectOneWriter(), first.ponderPid()];
  const waited = first.said(WAITS).length;
  first.kill("SIGSTOP");
  await db.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1", [holder]);
  await watching(db, second.saying("index ready"));
  await watching(db, followsForAMinute());
  expect(isAlive(ponder)).toBe(false);
  expect(await expectOneWriter()).not.toBe(holder);
  first.kill("SIGCONT");
  await watching(db, first.saying(WAITS, waited + 1));
  expect(await expectOneWriter()).not.toBe(holder);
  expect(first.said("ponder started")).toHaveLength(1);
});
