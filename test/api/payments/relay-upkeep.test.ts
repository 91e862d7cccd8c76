import { randomUUID } from "node:crypto";
import { type Hex, pad } from "viem";
import { beforeEach, describe, expect, test } from "vitest";
import { createJournal } from "../../../api/payments/journal/journal-store.ts";
import { createSeal } from "../../../api/platform/db/seal.ts";
import { PLACES, SHARES } from "../../../api/platform/relayer/places.ts";
import type { Relayer } from "../../../api/platform/relayer/relayer.ts";
import type { RelayRequest } from "../../../api/platform/relayer/send.ts";
import type { Lease } from "../../../api/platform/relayer/sender.ts";
import { createRelayPruning } from "../../../api/platform/relayer/store.ts";
import { startBaseLike } from "../../support/base-like/base-like.ts";
import { BASE as PROFILE } from "../../support/base-like/profiles.ts";
import { forFile } from "../../support/for-file.ts";
import { hex, newPayment, WRITES } from "../../support/payments/journal-rows.ts";
import { purpose, type Relaying, startRelaying } from "../../support/payments/relaying.ts";
import { FLAG } from "../../support/payments/wallets.ts";
import { binary } from "../../support/service/database.ts";
import { PAY_TO } from "../../support/service/environment.ts";

const base = await forFile(startBaseLike({ profile: { ...PROFILE, backends: [{ lagMs: 0 }] } }));

describe("The upkeep of transactions", () => {
  const ROWS = 5_000;
  const GAS = 100_000n;
  const { client } = base.chain;

  let relaying: Relaying;

  beforeEach(async () => {
    await base.resume();
    relaying = await startRelaying(base.url);
    await base.chain.setBalance(relaying.relayer.address, 10n ** 18n);
    return () => relaying.stop();
  });

  const send = (name: string, by = relaying.relayer, to: Hex = PAY_TO): Promise<Hex> =>
    by.send({ to, data: purpose(name), gas: GAS, lane: "batch", purpose: purpose(name) });
  const isMined = async (hash: Hex) =>
    (await client.getTransactionReceipt({ hash }).catch(() => null))?.status === "success";
  const states = async () => (await relaying.rows()).map(({ nonce, state }) => [nonce, state]);

  /** Inserts `ROWS` transactions in the given state, mined in the current block if they are mined. */
  async function unfinal(state: "mined" | "sent"): Promise<void> {
    const { number, hash } = await client.getBlock();
    await client.setNonce({ address: relaying.relayer.address, nonce: ROWS });
    await relaying.pool.query(
      `INSERT INTO relay (chain, sender, lane, nonce, hashes, raw, state, mined_hash, block_number, block_hash, reverted, gas, max_fee)
     SELECT 8453, $1, 'batch', n, ARRAY[sha256(n::text::bytea)], '\\\\x00', $2, CASE $2 WHEN 'mined' THEN sha256(n::text::bytea) END,
       CASE $2 WHEN 'mined' THEN $3::bigint END, CASE $2 WHEN 'mined' THEN $4::bytea END, CASE $2 WHEN 'mined' THEN false END, 100000, 14000000
     FROM generate_series(0, $5 - 1) AS n`,
      [binary(relaying.relayer.address), state, number.toString(), binary(hash), ROWS],
    );
  }

  describe.each(["mined", "sent"] as const)(`${ROWS} non-final transactions, all %s`, (state) => {
    test("A dropped transaction behind them is sent again in a pass of at most 80 calls", async () => {
      await unfinal(state);
      base.pool.treat("swallowed");
      const hash = await send("dropped");
      expect(await isMined(hash)).toBe(false);
      base.calls.reset();
      const started = performance.now();
      await relaying.tendAfter(5);
      expect(await isMined(hash)).toBe(true);
      // A tenth of a second on an idle machine. The call limits below are the real check.
      expect(performance.now() - started).toBeLessThan(10_000);
      const { eth_getTransactionReceipt = 0, eth_getBlockByNumber = 0 } = base.calls.byMethod();
      expect(eth_getTransactionReceipt).toBeLessThanOrEqual(64);
      expect(eth_getBlockByNumber).toBeLessThanOrEqual(64);
      expect(base.calls.total()).toBeLessThanOrEqual(80);
    });
  });

  test("Every transaction becomes final, and an idle account takes no calls", async () => {
    for (let index = 0; index < 3; index++) await send(`payment ${index}`);
    await relaying.tendAfter(5);
    expect(await states()).toEqual([
      [0, "mined"],
      [1, "mined"],
      [2, "mined"],
    ]);
    await base.pass(16);
    await relaying.tendAfter(5, relaying.another());
    expect(await states()).toEqual([
      [0, "final"],
      [1, "final"],
      [2, "final"],
    ]);
    base.calls.reset();
    await relaying.tendAfter(5);
    expect(base.calls.total()).toBe(0);
  });

  test("Only final transactions are deleted after thirty days", async () => {
    for (const name of ["old", "newer"]) await send(name);
    await base.pass(16);
    await relaying.tendAfter(5);
    await send("mined");
    base.halt();
    await send("sent");
    const prune = createRelayPruning(relaying.pool);
    const age = (days: number, which: string) =>
      relaying.pool.query(`UPDATE relay SET created_at = now() - make_interval(days => $1) WHERE ${which}`, [days]);
    await age(29, "nonce = 1");
    await age(31, "nonce <> 1");
    expect([await prune(), await prune()]).toEqual([1, 0]);
    expect((await states()).map(([nonce]) => nonce)).toEqual([1, 2, 3]);
  });

  describe("Many processes", () => {
    /** Ages the upkeep claim by this many seconds. */
    const claimAges = (seconds: number) =>
      relaying.pool.query("UPDATE relay_upkeep SET held_until = held_until - make_interval(secs => $1)", [seconds]);
    /** Returns whether another process can make a pass now. */
    async function isFree(): Promise<boolean> {
      base.calls.reset();
      await relaying.another().tend();
      return base.calls.total() > 0;
    }

    beforeEach(async () => {
      base.halt();
      await send("payment");
      return () => base.become(null);
    });

    test("Only one process makes a pass at a time, and its claim ends after 15 seconds if it dies", async () => {
      const waiting = Promise.withResolvers<void>();
      const asked = new Promise<void>((resolve) => {
        base.become(async (call, pass) => {
          resolve();
          await waiting.promise;
          return pass(call);
        });
      });
      const pass = relaying.relayer.tend();
      await asked;
      base.become(null);
      expect(await isFree()).toBe(false);
      await claimAges(14);
      expect(await isFree()).toBe(false);
      await claimAges(1);
      expect(await isFree()).toBe(true);
      waiting.resolve();
      await pass;
    });
  });

  describe("A node with a stale transaction count", () => {
    test("A stale transaction count never causes a second transaction with the same nonce", async () => {
      const head = await client.getBlockNumber();
      await send("one");
      await send("two");
      await base.pass(16);
      await relaying.tendAfter(600);
      await relaying.pool.query("UPDATE relay SET created_at = created_at - interval '1 hour'");
      base.backend(0, { lastBlock: head });
      await send("three", relaying.another());
      base.backend(0, { lastBlock: null });
      expect((await relaying.rows()).map(({ nonce }) => nonce)).toEqual([0, 1, 2]);
      await relaying.tendAfter(5);
      expect(await client.getTransactionCount({ address: relaying.relayer.address })).toBe(3);
    });
  });

  test("The next transaction fills a gap in the nonces", async () => {
    base.halt();
    await send("one");
    const gap = await send("gap");
    await send("three");
    await relaying.pool.query("DELETE FROM relay WHERE hashes[1] = $1", [binary(gap)]);
    base.pool.forget();
    await relaying.tendAfter(5);
    await send("fills the gap");
    await base.resume();
    await relaying.tendAfter(5);
    expect(await client.getTransactionCount({ address: relaying.relayer.address })).toBe(3);
  });

  describe("One purpose", () => {
    test("One purpose has one transaction, even from concurrent processes", async () => {
      const processes = [relaying.relayer, relaying.another(), relaying.another()];
      const hashes = await Promise.all([...processes, ...processes].map((one) => send("once", one)));
      expect(new Set(hashes).size).toBe(1);
      expect(await send("once")).toBe(hashes[0]);
      await base.pass(16);
      await relaying.tendAfter(5);
      expect(await send("once", relaying.another())).toBe(hashes[0]);
      expect(await client.getTransactionCount({ address: relaying.relayer.address })).toBe(1);
    });

    /** Succeeds while its flag is not set, and reverts once it is. */
    const RELUCTANT = "0x600054600757005b60006000fd" as const;
    const target = pad("0x7a", { size: 20 });

    test("A purpose whose transaction was mined and reverted never gets another one", async () => {
      await client.setCode({ address: target, bytecode: RELUCTANT });
      base.halt();
      const hash = await send("in vain", relaying.relayer, target);
      expect(await relaying.relayer.failed(purpose("in vain"))).toBeNull();
      await client.setStorageAt({ address: target, ...FLAG });
      await base.resume();
      await relaying.tendAfter(5);
      await client.setStorageAt({ address: target, index: FLAG.index, value: pad("0x0") });
      for (const one of [relaying.relayer, relaying.another()]) {
        await expect(send("in vain", one, target)).rejects.toThrow(/mined and reverted/);
        expect(await one.failed(purpose("in vain"))).toBe(hash);
      }
      // As if a node with gaps had shown another sender's transaction at this nonce.
      await relaying.pool.query("UPDATE relay SET state = 'lost'");
      await expect(send("in vain", relaying.another(), target)).rejects.toThrow(/mined and reverted/);
      expect(await client.getTransactionCount({ address: relaying.relayer.address })).toBe(1);
    });
  });

  test("A transaction moved by a reorganization is found again and becomes final", async () => {
    // anvil includes balance changes only from the next block on.
    await base.pass(0.2);
    const hash = await send("moved");
    await relaying.tendAfter(5);
    const blockOf = async () => (await relaying.pool.query("SELECT block_hash FROM relay")).rows[0]?.block_hash;
    const before = await blockOf();
    await client.request({ method: "anvil_reorg", params: [2, []] } as never);
    await relaying.tendAfter(7, relaying.another());
    await relaying.tendAfter(7, relaying.another());
    expect(await isMined(hash)).toBe(true);
    await base.pass(16);
    for (let pass = 0; pass < 3; pass++) await relaying.tendAfter(7, relaying.another());
    expect((await blockOf()).equals(before)).toBe(false);
    expect((await states())[0]?.[1]).toBe("final");
  });
});

describe("Slots and lost gas", () => {
  // Limits on an account's unmined transactions and on the gas that failed payments cost it.

  const GAS = 100_000n;
  const SEAL = createSeal(Buffer.alloc(32, 3));
  type Lane = RelayRequest["lane"];

  let relaying: Relaying;
  let sent = 0;

  async function begin(limits: Parameters<typeof startRelaying>[1]): Promise<void> {
    relaying = await startRelaying(base.url, limits);
    await base.chain.setBalance(relaying.relayer.address, 10n ** 18n);
  }
  beforeEach(async () => {
    await base.resume();
    return () => relaying.stop();
  });

  const send = (lane: Lane, by: Relayer = relaying.relayer, fields: Partial<RelayRequest> = {}): Promise<Hex> => {
    const own = purpose(`payment ${sent++}`);
    return by.send({ to: PAY_TO, data: own, gas: GAS, purpose: own, lane, ...fields });
  };
  const many = (count: number, lane: Lane, processes: readonly Relayer[]) =>
    Promise.allSettled(Array.from({ length: count }, (_, at) => send(lane, processes[at % processes.length])));
  const isSent = ({ status }: PromiseSettledResult<Hex>): boolean => status === "fulfilled";
  const noPlace = { because: "no place" };

  describe("Shares of the lanes", () => {
    beforeEach(() => begin({ shares: SHARES.facilitator }));

    test("Each lane keeps to its share when processes race for the last slot, and the node refuses no transaction", async () => {
      const processes = [relaying.relayer, relaying.another(), relaying.another(), relaying.another()];
      base.halt();
      const [alone, together] = await Promise.all([many(40, "alone", processes), many(40, "batch", processes)]);
      expect([alone.filter(isSent).length, together.filter(isSent).length]).toEqual([4, 12]);
      expect(base.pool.waiting().length).toBe(PLACES);
      const refused = [...alone, ...together].flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
      for (const reason of refused) expect(reason).toMatchObject(noPlace);
      expect((await relaying.rows()).map(({ nonce }) => nonce)).toEqual(Array.from({ length: PLACES }, (_, at) => at));
    });
  });

  test("A flood of other transactions leaves the arbiter's account its slots for outcomes", async () => {
    await begin({ shares: SHARES.arbiter });
    base.halt();
    const flood = await Promise.all([
      many(20, "alone", [relaying.relayer]),
      many(20, "batch", [relaying.another()]),
      many(6, "statement", [relaying.another()]),
    ]);
    expect(flood.map((one) => one.filter(isSent).length)).toEqual([2, 4, 4]);
    const outcomes = await many(7, "outcome", [relaying.another()]);
    expect(outcomes.filter(isSent).length).toBe(6);
    expect(base.pool.waiting().length).toBe(PLACES);
  });

  describe("The daily limit on gas lost to wallets with code", () => {
    /** Reverts once a flag in its storage is set. */
    const FAILS_LATER = "0x600054600757005b60006000fd" as const;
    const target = "0x000000000000000000000000000000000000007b";

    /** Sends a payment that is mined and reverts, this many seconds after it was sent. */
    async function fail(lane: Lane, seconds = 0): Promise<void> {
      const index = `0x${"00".repeat(32)}` as const;
      await base.chain.client.setCode({ address: target, bytecode: FAILS_LATER });
      await base.chain.client.setStorageAt({ address: target, index, value: index });
      base.halt();
      const hash = await send(lane, relaying.relayer, { to: target });
      await relaying.pool.query("UPDATE relay SET created_at = created_at - make_interval(secs => $1)", [seconds]);
      await base.chain.client.setStorageAt({ address: target, index, value: `0x${"00".repeat(31)}01` });
      await base.resume();
      expect((await relaying.relayer.waitFor(hash, 10_000)).status).toBe("reverted");
    }

    /** Inserts a payment and marks it as about to be submitted. Returns its lease. */
    async function leased(payer: Hex): Promise<Lease> {
      const journal = createJournal(relaying.pool, SEAL);
      const entered = newPayment({ payer });
      const lease = { key: entered.key, token: randomUUID() };
      expect(await journal.insert(entered, lease.token)).toBe(1);
      expect(await journal.write(lease.key, lease.token, { ...WRITES.leave, kept: entered })).toBe(1);
      return lease;
    }

    async function paidBefore(payer: Hex): Promise<void> {
      const { key, token } = await leased(payer);
      expect(await createJournal(relaying.pool, SEAL).write(key, token, WRITES.settle)).toBe(1);
    }

    test("Above half of the limit, payments of newcomers wait, while earlier payers and other lanes are still served", async () => {
      await begin({ shares: SHARES.facilitator, mostLostWei: 2n });
      await fail("alone");
      const [newcomer, known] = [hex(20), hex(20)];
      await paidBefore(known);
      await expect(send("alone")).rejects.toMatchObject({ because: "gas lost" });
      await expect(send("alone", relaying.another(), { lease: await leased(newcomer) })).rejects.toMatchObject({
        because: "gas lost",
      });
      await send("alone", relaying.relayer, { lease: await leased(known) });
      await send("batch", relaying.relayer, { lease: await leased(newcomer) });
      await relaying.pool.query("UPDATE relay SET created_at = created_at - interval '1 day'");
      await send("alone", relaying.relayer, { lease: await leased(newcomer) });
    });

    test("A payer is a newcomer if the earlier payment was on another chain, failed, or was canceled", async () => {
      await begin({ shares: SHARES.facilitator, mostLostWei: 2n });
      await fail("alone");
      const elsewhere = hex(20);
      await paidBefore(elsewhere);
      await relaying.pool.query("UPDATE payment SET chain = 84532");
      const newcomers = [elsewhere];
      for (const end of [
        { reason: "reverted" },
        { reason: "reverted", excused: true },
        { reason: "nonce_consumed" },
      ] as const) {
        const payer = hex(20);
        await paidBefore(payer);
        const { key, token } = await leased(payer);
        const write = { type: "write", from: ["settling"], to: "void", ...end } as const;
        expect(await createJournal(relaying.pool, SEAL).write(key, token, write)).toBe(1);
        newcomers.push(payer);
      }
      for (const payer of newcomers)
        await expect(send("alone", relaying.relayer, { lease: await leased(payer) })).rejects.toMatchObject({
          because: "gas lost",
        });
    });

    test.each([
      ["in the outcome lane", "outcome", 0],
      ["mined after the shortest allowed window", "alone", 21],
    ] as const)("Losses %s do not count", async (_, lane, seconds) => {
      await begin({ shares: SHARES.arbiter, mostLostWei: 2n });
      await fail(lane, seconds);
      await send("alone");
    });
  });
});
