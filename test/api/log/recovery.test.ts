import { describe, expect, test } from "vitest";
import type { StoredCheckpoint } from "../../../api/log/store.ts";
import type { KnownHead } from "../../../api/log/trust.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import type { EntryType } from "../../../packages/verifier/src/tlog/entry-types.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { naiveRoot } from "../../support/log/memory-log.ts";
import {
  auditLog,
  CHECKPOINTS_AGE,
  certificateInsert,
  copyOf,
  endConnections,
  logOn,
  logStage,
} from "../../support/log/stage.ts";
import { storeLog } from "../../support/log/stored-log.ts";
import { connectOwner, freshDatabase } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

const head = (size: number, root: Uint8Array): KnownHead => ({ size, root, source: "a witness", at: new Date(0) });

const LATE = "0".repeat(15);
const KNOWN = ["1", "2", "3"].map((ref) => ({ type: "policy" as const, ref, members: { type: "PublishedPolicy" } }));

describe("log of which witnesses know more", () => {
  const known = (heads: readonly KnownHead[], silent: readonly string[] = []) => ({
    sources: 2,
    ask: async () => ({ heads, silent }),
  });

  test("The log is not signed while entries are missing, and continues once they are back", async () => {
    const heads: KnownHead[] = [];
    let now = 0;
    const at = await logStage({ heads: known(heads), elapsedMs: () => now });
    await at.add(5);
    await at.integrate();
    heads.push(head(9, Buffer.alloc(32)));
    await at.add(1);
    at.log.distrust();
    expect(await at.integrate()).toBe(0);
    expect(at.log.state()).toMatchObject({ state: "refused", problem: expect.stringMatching(MISSING) });
    expect([await at.queued(), at.log.errors.length]).toEqual([1, 1]);
    heads.pop();
    expect([await at.integrate(), await at.queued()]).toEqual([0, 1]);
    now += 20_000;
    expect([await at.integrate(), at.log.state()]).toEqual([1, { state: "integrating", problem: null }]);
  });
  const MISSING =
    /^the database has 5 entries, and a witness knows 9 .*: entries 5 to 8 are missing, signed after .*LOG_GENERATION/;

  test("The log is not signed if a witness knows a different tree of the same entries", async () => {
    const heads: KnownHead[] = [];
    const at = await logStage({ heads: known(heads) });
    await at.add(5);
    await at.integrate();
    heads.push(head(3, Buffer.alloc(32, 1)));
    await at.add(1);
    at.log.distrust();
    expect(await at.integrate()).toBe(0);
    expect(at.log.state().problem).toMatch(/^a witness knows a different tree of the first 3 entries/);
  });

  test("The log is signed if every known head is its beginning", async () => {
    const heads: KnownHead[] = [];
    const at = await logStage({ heads: known(heads) });
    await at.add(300);
    await at.integrate();
    const { size, root } = (await at.log.store.newest(1)) ?? { size: 0, root: Buffer.alloc(0) };
    heads.push(head(size, root), head(0, naiveRoot([])));
    heads.push(head(257, naiveRoot(await at.log.store.entries(1, 0, 257))));
    at.log.distrust();
    await at.add(1);
    expect([await at.integrate(), at.log.errors]).toEqual([1, []]);
  });

  test("The log waits ten minutes for a silent source, or a day if all are silent, and then reports it", async () => {
    for (const [silent, patience] of [
      [["one"], 600_000],
      [["one", "other"], 86_400_000],
    ] as const) {
      let now = 0;
      const at = await logStage({ heads: known([], silent), elapsedMs: () => now });
      await at.add(1);
      expect([await at.integrate(), at.log.state().state]).toEqual([0, "checking"]);
      now = patience - 1;
      expect(await at.integrate()).toBe(0);
      now = patience + 20_000;
      expect([await at.integrate(), at.log.errors.length]).toEqual([1, 2]);
    }
  });

  test("A restart on a server that was already checked continues immediately, but not after a doubt", async () => {
    const at = await logStage();
    await at.add(1);
    expect(await at.integrate()).toBe(1);
    let now = 0;
    const heads = known([], ["one", "other"]);
    const restarted = await logOn(at.pool, { heads, elapsedMs: () => now });
    await at.add(1);
    expect([await at.integrate(restarted), restarted.errors.length]).toEqual([1, 1]);
    restarted.distrust();
    await at.add(1);
    expect([await at.integrate(restarted), restarted.state().state]).toEqual([0, "checking"]);
    await at.owner.query("UPDATE log_vouched SET server = 'before it was restored'");
    const later = await logOn(at.pool, { heads, elapsedMs: () => now });
    expect([await at.integrate(later), later.state().state]).toEqual([0, "checking"]);
    now = 86_420_000;
    expect(await at.integrate(later)).toBe(1);
    expect(await at.audit()).toEqual([]);
  });

  test("The log is not signed while a witness rejects it", async () => {
    let danger: string | null = "a witness has a larger tree";
    const at = await logStage({ danger: async () => danger });
    await at.add(1);
    expect([await at.integrate(), at.log.state()]).toEqual([0, { state: "refused", problem: danger }]);
    danger = null;
    expect(await at.integrate()).toBe(1);
  });
});

describe("database restored from a backup", () => {
  /** A backup with five entries of a log that a witness has seen with nine. */
  async function restored() {
    const database = await freshDatabase();
    const add = async (digits: string) => {
      const pool = connect(database.apiUrl);
      await withClient(database.ownerUrl, async (owner) => {
        for (const digit of digits) await owner.query(certificateInsert(`${LATE}${digit}`));
        await owner.query(CHECKPOINTS_AGE);
      });
      const { store, integrate } = await logOn(pool);
      await integrate();
      const newest = (await store.newest(1)) as StoredCheckpoint;
      await pool.end();
      return newest;
    };
    await add("12345");
    const backup = await copyOf(database);
    const lost = await add("6789");
    const seen = head(9, lost.root);
    const witnessed = { sources: 1, ask: async () => ({ heads: [seen], silent: [] }) };
    return { backup, witnessed };
  }

  test("The loss is detected at the start, and the next generation is a new log that takes the waiting records", async () => {
    const { backup, witnessed } = await restored();
    const pool = await forFile(connect(backup.apiUrl));
    const owner = await forFile(await connectOwner(backup));
    // The backup also contains the results of earlier checks, which prove nothing about the restored database.
    const deaf = await logOn(pool, { heads: { sources: 1, ask: async () => ({ heads: [], silent: ["a witness"] }) } });
    expect([await deaf.integrate(), deaf.state().state]).toEqual([0, "checking"]);
    const old = await logOn(pool, { heads: witnessed });
    expect(await old.integrate()).toBe(0);
    expect(old.state()).toMatchObject({
      state: "refused",
      problem: expect.stringContaining("entries 5 to 8 are missing"),
    });

    await owner.query(certificateInsert(`${LATE}a`));
    const next = await logOn(pool, { generation: 2, announced: KNOWN });
    expect([next.origin, await next.integrate()]).toEqual(["trust.example/log/2", 4]);
    const kept = (await next.store.newest(1)) as StoredCheckpoint;
    expect(kept.size).toBe(5);
    expect(await auditLog({ owner, store: next.store, verifier: next.verifier, generation: 2 })).toEqual([]);
    expect(await auditLog({ owner, store: old.store, verifier: old.verifier })).toEqual([]);

    const stale = await logOn(pool);
    expect([await stale.integrate(), stale.state().problem]).toEqual([0, expect.stringContaining("LOG_GENERATION=2")]);
  });

  test("Once a new generation has begun, no process writes to the old log", async () => {
    const at = await logStage();
    await at.add(3);
    await at.integrate();
    const second = await logOn(at.pool, { generation: 2 });
    expect(await at.integrate(second)).toBe(0);
    await at.add(1);
    expect([await at.integrate(), at.log.state()]).toEqual([
      0,
      { state: "refused", problem: expect.stringContaining("LOG_GENERATION") },
    ]);
    expect(await at.integrate(second)).toBe(1);
  });

  test("A restore under a running process is detected, even if no witness has seen the log", async () => {
    const { backup } = await restored();
    const at = await logStage();
    await at.add(6);
    expect(await at.integrate()).toBe(6);
    // The process's connections lead to the restored database from here on.
    Object.assign(at.pool.options, { connectionString: backup.apiUrl });
    await endConnections(at.pool);
    await withClient(backup.ownerUrl, (owner) => owner.query(certificateInsert(`${LATE}c`)));
    await at.log.integrate().catch(() => 0);
    await at.log.integrate();
    expect(at.log.state()).toMatchObject({
      state: "refused",
      problem: expect.stringContaining("this process knows 6"),
    });
  });
});

test("A log keeps its origin, key, and proofs when the service moves to another address", async () => {
  const at = await logStage();
  const [before = ""] = await at.add(2);
  await at.integrate();
  const moved = await logOn(at.pool, { baseUrl: "https://other.example", origin: at.log.origin });
  const [after = ""] = await at.add(1);
  expect(await at.integrate(moved)).toBe(1);
  const urls = [before, after].map(async (id) => {
    const entry = await moved.store.find("certificate", id);
    return JSON.parse(String(entry?.entry)).document.cert_url;
  });
  expect(await Promise.all(urls)).toEqual([
    `https://trust.example/cert/${before}`,
    `https://other.example/cert/${after}`,
  ]);
  // Every checkpoint verifies with the key that readers already have.
  expect(await at.audit()).toEqual([]);
});

describe("existing generation", () => {
  test.each([
    ["with another key", { key: 9 }, /the log's key is .*restore LOG_KEY/],
    ["at another address", { baseUrl: "https://other.example" }, /set LOG_ORIGIN=trust\.example\/log; /],
    [
      "under its successor's number",
      { generation: 2, origin: "trust.example/log" },
      /belongs to generation 1 .*LOG_ORIGIN/,
    ],
    ["with another one before it", { generation: 3 }, /set LOG_GENERATION=2/],
  ] as const)("A generation is not continued %s", async (_, plan, problem) => {
    const at = await logStage();
    await at.add(1);
    await at.integrate();
    await at.add(1);
    const other = await logOn(at.pool, plan);
    expect(await at.integrate(other)).toBe(0);
    expect([other.state(), await at.queued()]).toEqual([
      { state: "refused", problem: expect.stringMatching(problem) },
      1,
    ]);
    expect(await at.integrate()).toBe(1);
  });
});

describe("two generations", async () => {
  const chain = await forFile(startTestChain());
  const first = await forFile(startService({ chain, jobs: false }));
  const config = { log: { ...first.config.log, generation: 2 } };
  const service = await forFile(startService({ chain, jobs: false, database: first.database, config }));

  const entry = (type: EntryType, ref: string) => ({
    type,
    ref,
    entry: Buffer.from(JSON.stringify({ id: ref, type })),
  });
  const ID = "00000000000000a1";
  await (await storeLog(service.database, "old/log", 1)).grow([entry("policy", "1"), entry("certificate", ID)]);
  await (await storeLog(service.database, "new/log/2", 2)).grow([entry("policy", "2"), entry("reversal", ID)]);

  const get = (path: string) => fetch(`${service.url}${path}`);

  test.each([
    ["/log/checkpoint", "old/log"],
    ["/log/2/checkpoint", "new/log/2"],
  ])("%s is the checkpoint of %s", async (path, origin) => {
    const answer = await get(path);
    expect([answer.status, (await answer.text()).split("\n")[0]]).toEqual([200, origin]);
  });

  test("The newest generation is the current log, and all earlier ones have ended", async () => {
    const log = (await (await get("/log")).json()) as { origin: string; generations: { ended: boolean }[] };
    expect([log.origin, log.generations.map(({ ended }) => ended)]).toEqual(["new/log/2", [true, false]]);
  });
});

/** A change that needs the table's protection to be removed first. */
const unprotected = (table: string, statement: string) =>
  `ALTER TABLE ${table} DISABLE TRIGGER USER; ${statement}; ALTER TABLE ${table} ENABLE TRIGGER USER`;

describe("damaged log under a running process", () => {
  test("A log that has lost its end on the same server is not continued", async () => {
    const at = await logStage();
    for (const size of [3, 6]) {
      await at.add(3);
      expect([await at.integrate(), (await at.log.store.newest(1))?.size]).toEqual([3, size]);
    }
    await at.owner.query(unprotected("log_checkpoint", "DELETE FROM log_checkpoint WHERE size = 6"));
    await at.owner.query(unprotected("log_entry", "DELETE FROM log_entry WHERE idx >= 3"));
    await at.owner.query(unprotected("log_tile", "UPDATE log_tile SET hashes = substr(hashes, 1, 96)"));
    await at.add(1);
    expect([await at.integrate(), await at.integrate()]).toEqual([0, 0]);
    expect(at.log.state()).toMatchObject({
      state: "refused",
      problem: expect.stringMatching(/database has 3 entries, and this process knows 6/),
    });
  });

  test("A log whose tiles do not match its checkpoint's root is not continued", async () => {
    const at = await logStage();
    await at.add(3);
    expect(await at.integrate()).toBe(3);
    const other = "UPDATE log_tile SET hashes = set_byte(hashes, 70, 255 - get_byte(hashes, 70))";
    await at.owner.query(unprotected("log_tile", other));
    await at.add(1);
    await expect(at.integrate()).rejects.toThrow(/root of the log's tiles differs from its checkpoint of 3 entries/);
    expect((await at.log.store.newest(1))?.size).toBe(3);
  });

  test("A changed server is checked against outside sources, even if everything that the process has seen is there", async () => {
    const database = await freshDatabase();
    const pool = await forFile(connect(database.apiUrl));
    const heads: KnownHead[] = [];
    const log = await logOn(pool, { heads: { sources: 1, ask: async () => ({ heads, silent: [] }) } });
    const sell = (url: string, digits: string) =>
      withClient(url, async (owner) => {
        for (const digit of digits) await owner.query(certificateInsert(`${"0".repeat(15)}${digit}`));
        await owner.query(CHECKPOINTS_AGE);
      });
    await sell(database.ownerUrl, "12345");
    expect(await log.integrate()).toBe(5);
    await endConnections(pool);
    const backup = await copyOf(database);
    // Other processes continued, and a witness has seen their checkpoint.
    heads.push({ size: 9, root: Buffer.alloc(32), source: "a witness", at: new Date(0) });
    Object.assign(pool.options, { connectionString: backup.apiUrl });
    await endConnections(pool);
    await sell(backup.ownerUrl, "6");
    expect([await log.integrate(), await log.integrate()]).toEqual([0, 0]);
    expect(log.state()).toMatchObject({
      state: "refused",
      problem: expect.stringMatching(/database has 5 entries, and a witness knows 9/),
    });
  });
});
