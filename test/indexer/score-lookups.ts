import type pg from "pg";
import { beforeEach, describe, expect, test } from "vitest";
import type { Address } from "../../api/platform/wallet.ts";
import { openLookUps } from "../../api/score/index.ts";
import { createScoreIndex } from "../../api/score/index-store.ts";
import { type LookUps, withLookup } from "../../api/score/lookup/look-up.ts";
import type { ChainReading } from "../../packages/verifier/src/score/facts.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { askNode, serveNode } from "../support/chain/rpc.ts";
import { type ApiProcess, startApiProcess } from "../support/service/api-process.ts";
import type { TestDatabase } from "../support/service/database.ts";
import { SERVICE } from "./history.ts";
import { AGENTS } from "./score-economy.ts";
import { walletOf } from "./score-scene.ts";

export interface LookedUp {
  /** At least two connections to the database of an index of scope `selective`. */
  readonly pool: pg.Pool;
  readonly database: TestDatabase;
  readonly rpcUrl: string;
  /** The last block's time. */
  readonly end: Date;
}

const WALLETS = AGENTS.map(walletOf);
const HONEST = [walletOf("honest")];

/** A node that counts requests for logs and answers them only after `gate`. */
async function countingNode(rpcUrl: string, gate: () => Promise<void> = async () => {}) {
  const counted = { logs: 0, all: 0 };
  const ask = askNode(rpcUrl);
  const node = await serveNode({
    answer: async (call) => {
      counted.all += 1;
      if (call.method !== "eth_getLogs") return ask(call);
      counted.logs += 1;
      await gate();
      return ask(call);
    },
  });
  return { url: node.url, counted, stop: () => node.stop() };
}

/** Tests the service's look-ups on the scenarios' chain. */
export function describeLookUps(given: () => LookedUp): void {
  describe("look-ups", () => {
    const now = () => given().end;

    beforeEach(async () => {
      for (const table of ["inflow", "score_lookup", "lookup_mark", "lookup_budget"])
        await given().pool.query(`delete from ${table}`);
    });

    test("They are made once, and afterwards no process queries a node for them", async () => {
      const { pool, rpcUrl } = given();
      const node = await countingNode(rpcUrl);
      try {
        const first = await readSelective(pool, lookUpsOf({ pool, rpcUrls: [node.url], now }).lookUps, {
          wallets: WALLETS,
          now: now(),
        });
        // Eleven wallets and their payees' payers, in shared requests.
        expect(node.counted.logs).toBeLessThanOrEqual(8);
        const before = node.counted.all;
        const another = lookUpsOf({ pool, rpcUrls: [node.url], now }).lookUps;
        expect(await readSelective(pool, another, { wallets: WALLETS, now: now() })).toEqual(first);
        expect(node.counted.all).toBe(before);
        // An expired look-up is made again from stored data.
        await pool.query("update score_lookup set made_at = made_at - interval '2 hours'");
        expect(await readSelective(pool, another, { wallets: WALLETS, now: now() })).toEqual(first);
        expect(node.counted.all).toBe(before);
      } finally {
        await node.stop();
      }
    });

    test("Two processes with the same wallets query each block once", async () => {
      const { pool, rpcUrl } = given();
      let open: () => void = () => undefined;
      const opened = new Promise<void>((resolve) => {
        open = resolve;
      });
      const alone = await countingNode(rpcUrl);
      const node = await countingNode(rpcUrl, () => opened);
      try {
        await lookUpsOf({ pool, rpcUrls: [alone.url], now }).lookUps.prepare(HONEST, "one");
        for (const table of ["inflow", "score_lookup"]) await pool.query(`delete from ${table}`);
        const marks = await pool.query("select from lookup_mark");
        expect(marks.rowCount).toBeGreaterThan(0);
        const [one, other] = [0, 1].map(() => lookUpsOf({ pool, rpcUrls: [node.url], now }).lookUps);
        const both = Promise.all([one?.prepare(HONEST, "one"), other?.prepare(HONEST, "other")]);
        await expect.poll(() => node.counted.logs).toBe(1);
        open();
        expect(await both).toEqual([null, null]);
        // The marks are stored, which saves two requests of the first run.
        expect(node.counted.logs).toBeLessThanOrEqual(alone.counted.logs);
      } finally {
        open();
        await Promise.all([alone.stop(), node.stop()]);
      }
    });

    test("They stop at the limit of the client or of all clients, and resume from there", async () => {
      const { pool, rpcUrl } = given();
      const prepare = (perClient: number, perHour: number) =>
        lookUpsOf({ pool, rpcUrls: [rpcUrl], now, perClient, perHour }).lookUps.prepare(HONEST, "a client");
      const spent = await prepare(2, 100);
      expect(spent).toMatchObject({
        isSpent: true,
        detail: expect.stringContaining("Your address has used its look-ups"),
      });
      expect(spent?.retryAfterSeconds).toBeGreaterThan(0);
      expect(spent?.retryAfterSeconds).toBeLessThanOrEqual(3_600);
      expect(await prepare(100, 2)).toMatchObject({ isSpent: false, detail: expect.stringContaining("All look-ups") });
      const { rows } = await pool.query("select client, used from lookup_budget order by client");
      expect(rows).toEqual([
        { client: "", used: 2 },
        { client: "a client", used: 3 },
        { client: "network a client", used: 3 },
      ]);
      expect(await prepare(100, 100)).toBeNull();
    });

    test("They survive the death of a process, and above its limit a client gets a 429 without a charge", async () => {
      const { pool, rpcUrl, database } = given();
      const sepolia = await startTestChain({ network: "eip155:84532" });
      let open: () => void = () => undefined;
      const opened = new Promise<void>((resolve) => {
        open = resolve;
      });
      // The node answers the very first look-up and delays the following ones.
      let asked = 0;
      const slow = await countingNode(rpcUrl, () => (++asked < 2 ? Promise.resolve() : opened));
      const node = await countingNode(rpcUrl);
      const processes: ApiProcess[] = [];
      const startApi = async (url: string, perClient: number) => {
        const env = { LOOKUP_RPC_URLS: url, LOOKUPS_PER_CLIENT: String(perClient), PAY_TO_ADDRESS: SERVICE };
        const plan = { database, baseRpcUrl: rpcUrl, baseSepoliaRpcUrl: sepolia.rpcUrl, env };
        const started = await startApiProcess(plan);
        processes.push(started);
        return started;
      };
      const ask = ({ url }: ApiProcess) =>
        fetch(`${url}/score`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ wallet: HONEST[0] }),
        });
      const found = async () => (await pool.query("select wallet, block, found from score_lookup")).rows;
      try {
        await lookUpsOf({ pool, rpcUrls: [rpcUrl], now }).lookUps.prepare(HONEST, "one");
        const expected = await found();
        expect(expected).toHaveLength(1);
        for (const table of ["inflow", "score_lookup", "lookup_mark", "lookup_budget"])
          await pool.query(`delete from ${table}`);

        const first = await startApi(slow.url, 100);
        const lost = ask(first).catch(() => null);
        await expect.poll(() => slow.counted.logs, { timeout: 30_000 }).toBe(2);
        await first.kill();
        await lost;
        const claimed = await pool.query("select from inflow where claimed_by is not null");
        expect(claimed.rowCount).toBeGreaterThan(0);
        expect(await found()).toEqual([]);
        // Simulates that thirty seconds pass.
        await pool.query("update inflow set claimed_until = now()");
        await pool.query("delete from lookup_budget");

        const second = await startApi(node.url, 1);
        const responses = new Map<number, Response>();
        const askAgain = async () => {
          // Simulates the next hour.
          if (responses.has(429)) await pool.query("delete from lookup_budget");
          const response = await ask(second);
          responses.set(response.status, response);
          return response.status;
        };
        await expect.poll(askAgain, { timeout: 60_000, interval: 100 }).toBe(402);
        const spent = responses.get(429);
        expect(Number(spent?.headers.get("retry-after"))).toBeGreaterThan(0);
        expect(await spent?.text()).toMatch(/used its look-ups.*Nothing was charged/);
        expect(await found()).toEqual(expected);
      } finally {
        open();
        await Promise.all([...processes.map((one) => one.kill()), slow.stop(), node.stop(), sepolia.stop()]);
      }
    }, 120_000);
  });
}

export interface LookUpPlan {
  readonly pool: pg.Pool;
  readonly rpcUrls: readonly string[];
  readonly now: () => Date;
  readonly perClient?: number;
  readonly perHour?: number;
}

/** The look-ups of a service with this database. Failures are collected in `failures`. */
export function lookUpsOf({ pool, rpcUrls, now, perClient = 10_000, perHour = 10_000 }: LookUpPlan) {
  const failures: object[] = [];
  const lookUps = openLookUps(
    { pool, now, log: { warn: (facts: object) => failures.push(facts) } },
    {
      ...{ indexViewsSchema: "live", payTo: SERVICE, ownAddresses: [] },
      lookUps: { rpcUrls, perSecond: 10_000, perClient, perHour },
    },
    { contracts: [] },
  );
  return { lookUps, failures };
}

/** The score's readings of these wallets after all look-ups. */
export async function readSelective(
  pool: pg.Pool,
  lookUps: LookUps,
  { wallets, now }: { readonly wallets: readonly Address[]; readonly now: Date },
): Promise<readonly ChainReading[]> {
  const notYet = await lookUps.prepare(wallets, "a client");
  if (notYet !== null) throw new Error(notYet.detail);
  const [found, readings] = await Promise.all([
    lookUps.found(wallets),
    createScoreIndex(pool, { viewsSchema: "live" }).read(wallets, now),
  ]);
  if (found?.isComplete !== true || readings === null) throw new Error("nothing was found");
  return readings.map((reading, place) => {
    const wallet = wallets[place] as Address;
    return withLookup(wallet, reading, found.snapshots.get(wallet));
  });
}
