import { randomUUID } from "node:crypto";
import type { Hex } from "viem";
import { beforeEach, describe, expect, test } from "vitest";
import { createJournal } from "../../../api/payments/journal/journal-store.ts";
import { createSeal } from "../../../api/platform/db/seal.ts";
import { PLACES, SHARES } from "../../../api/platform/relayer/places.ts";
import type { Relayer } from "../../../api/platform/relayer/relayer.ts";
import type { RelayRequest } from "../../../api/platform/relayer/send.ts";
import type { Lease } from "../../../api/platform/relayer/sender.ts";
import { startBaseLike } from "../../support/base-like/base-like.ts";
import { BASE as PROFILE } from "../../support/base-like/profiles.ts";
import { forFile } from "../../support/for-file.ts";
import { hex, newPayment, WRITES } from "../../support/payments/journal-rows.ts";
import { purpose, type Relaying, startRelaying } from "../../support/payments/relaying.ts";
import { PAY_TO } from "../../support/service/environment.ts";

// Limits on an account's unmined transactions and on the gas that failed payments cost it.

const base = await forFile(startBaseLike({ profile: { ...PROFILE, backends: [{ lagMs: 0 }] } }));
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
