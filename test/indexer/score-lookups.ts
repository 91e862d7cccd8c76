import type pg from "pg";
import { beforeEach, describe, expect, test } from "vitest";
import { askNode, serveNode } from "../support/chain/rpc.ts";
import { AGENTS } from "./score-economy.ts";
import { walletOf } from "./score-scene.ts";
import { lookUpsOf, readSelective } from "./selective.ts";

export interface LookedUp {
  /** Two connections or more, to the database of an index of scope `selective`. */
  readonly pool: pg.Pool;
  readonly rpcUrl: string;
  /** The last block's time. */
  readonly end: Date;
}

const WALLETS = AGENTS.map(walletOf);
const HONEST = [walletOf("honest")];

/** A node that says how often it was asked for logs, and answers them only once `gate` lets it. */
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

/** What the service does about look-ups, on the scenarios' chain. */
export function describeLookUps(given: () => LookedUp): void {
  describe("look-ups", () => {
    const now = () => given().end;

    beforeEach(async () => {
      for (const table of ["inflow", "score_lookup", "lookup_mark", "lookup_budget"])
        await given().pool.query(`delete from ${table}`);
    });

    test("are made once: then no node is asked, not even by another process", async () => {
      const { pool, rpcUrl } = given();
      const node = await countingNode(rpcUrl);
      try {
        const first = await readSelective(pool, lookUpsOf({ pool, rpcUrls: [node.url], now }).lookUps, {
          wallets: WALLETS,
          now: now(),
        });
        // Eleven wallets and their payees' payers, together.
        expect(node.counted.logs).toBeLessThanOrEqual(8);
        const before = node.counted.all;
        const another = lookUpsOf({ pool, rpcUrls: [node.url], now }).lookUps;
        expect(await readSelective(pool, another, { wallets: WALLETS, now: now() })).toEqual(first);
        expect(node.counted.all).toBe(before);
        // A look-up that is too old is made again from what is known.
        await pool.query("update score_lookup set made_at = made_at - interval '2 hours'");
        expect(await readSelective(pool, another, { wallets: WALLETS, now: now() })).toEqual(first);
        expect(node.counted.all).toBe(before);
      } finally {
        await node.stop();
      }
    });

    test("by two processes for the same wallets at once ask nodes for each block once", async () => {
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
        // The marks are known, which takes two requests of the first.
        expect(node.counted.logs).toBeLessThanOrEqual(alone.counted.logs);
      } finally {
        open();
        await Promise.all([alone.stop(), node.stop()]);
      }
    });

    test("end when the client's are used, or everybody's, and go on from there", async () => {
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
      ]);
      expect(await prepare(100, 100)).toBeNull();
    });
  });
}
