import type { Hex } from "viem";
import { beforeEach, describe, expect, test } from "vitest";
import { startBaseLike } from "../../support/base-like/base-like.ts";
import { HALT_MINUTES, POOL_ERRORS, BASE as PROFILE } from "../../support/base-like/profiles.ts";
import { forFile } from "../../support/for-file.ts";
import { purpose, type Relaying, startRelaying } from "../../support/payments/relaying.ts";
import { PAY_TO } from "../../support/service/environment.ts";

const base = await forFile(startBaseLike({ profile: { ...PROFILE, backends: [{ lagMs: 0 }] } }));
const { client } = base.chain;
const GAS = 100_000n;

let relaying: Relaying;
let sent = 0;

beforeEach(async () => {
  base.become(null);
  await base.resume();
  await base.fees(1);
  relaying = await startRelaying(base.url);
  await base.chain.setBalance(relaying.relayer.address, 10n ** 18n);
  return () => relaying.stop();
});

const send = (by = relaying.relayer, mostFee?: bigint): Promise<Hex> =>
  by.send({ to: PAY_TO, data: "0x", gas: GAS, lane: "batch", purpose: purpose(`payment ${sent++}`), mostFee });
const isMined = async (hash: Hex): Promise<boolean> =>
  (await client.getTransactionReceipt({ hash }).catch(() => null))?.status === "success";
const hashes = async () => (await relaying.rows()).map((row) => row.hashes.length);
const newest = async () => (await relaying.rows()).map((row) => row.hashes.at(-1));

describe(`A halt of ${HALT_MINUTES} minutes`, () => {
  test("A halt changes no fee and broadcasts nothing again, because no block was mined", async () => {
    base.halt();
    const hash = await send();
    base.calls.reset();
    for (let half = 0; half < HALT_MINUTES * 2; half++) await relaying.tendAfter(30);
    expect(await hashes()).toEqual([1]);
    expect(base.calls.byMethod().eth_sendRawTransaction ?? 0).toBe(0);
    await base.resume();
    expect(await isMined(hash)).toBe(true);
  });

  test("A pool that loses its transactions during a halt gets all of them again, lowest nonce first", async () => {
    base.halt();
    const all: Hex[] = [];
    while (all.length < 5) all.push(await send());
    base.pool.forget();
    expect(base.pool.waiting()).toEqual([]);
    await relaying.tendAfter(5);
    expect(base.pool.waiting()).toEqual(all);
    await base.resume();
    expect(await Promise.all(all.map(isMined))).toEqual(all.map(() => true));
  });
});

describe.each([
  ["swallows", "swallowed"],
  ["refuses", { refusedWith: POOL_ERRORS.full }],
] as const)("A pool that %s a transaction", (_, outcome) => {
  test("The same transaction is broadcast again", async () => {
    base.pool.treat(outcome);
    const hash = await send();
    expect(await isMined(hash)).toBe(false);
    await relaying.tendAfter(5);
    expect(await isMined(hash)).toBe(true);
    expect(await hashes()).toEqual([1]);
  });
});

describe("A fifty-fold fee spike", () => {
  const stuck = async (count: number): Promise<void> => {
    base.halt();
    while ((await hashes()).length < count) await send();
    await base.fees(50);
    await base.resume();
    await base.pass(1);
  };
  const market = () => PROFILE.baseFee * 50n + PROFILE.priorityFee;

  test("Stuck transactions are replaced once, at no more than four times the market", async () => {
    await stuck(3);
    const fresh = relaying.another();
    for (let half = 0; half < 10; half++) await relaying.tendAfter(31, fresh);
    expect(await hashes()).toEqual([2, 2, 2]);
    expect(await Promise.all((await newest()).map((hash) => isMined(hash as Hex)))).toEqual([true, true, true]);
    for (const { reserved } of await relaying.rows()) expect(reserved).toBeLessThanOrEqual(27_300n * 4n * market());
  });

  test("If the balance cannot cover replacements for all, none is replaced, and the originals are mined after the spike", async () => {
    await stuck(3);
    const poor = 27_300n * market() * 3n;
    await base.chain.setBalance(relaying.relayer.address, poor);
    const fresh = relaying.another();
    for (let half = 0; half < 10; half++) await relaying.tendAfter(31, fresh);
    expect(await hashes()).toEqual([1, 1, 1]);
    await base.fees(1);
    await base.pass(1);
    expect(await Promise.all((await newest()).map((hash) => isMined(hash as Hex)))).toEqual([true, true, true]);
  });

  test("If the balance just covers the replacements, they reserve no more than the balance in total", async () => {
    await stuck(3);
    const balance = (27_300n * market() * 3n * 12n) / 10n;
    await base.chain.setBalance(relaying.relayer.address, balance);
    await base.pass(0.05);
    base.halt();
    await relaying.tendAfter(31, relaying.another());
    const rows = await relaying.rows();
    expect(rows.map((row) => row.hashes.length)).toEqual([2, 2, 2]);
    const reserved = rows.reduce((sum, row) => sum + row.reserved, 0n);
    expect(reserved).toBeLessThanOrEqual(balance);
    await base.resume();
    expect(await Promise.all((await newest()).map((hash) => isMined(hash as Hex)))).toEqual([true, true, true]);
  });
});

test("A new transaction needs a balance that covers its fee and the fees of all unmined transactions", async () => {
  base.halt();
  await send();
  const [{ reserved } = { reserved: 0n }] = await relaying.rows();
  // Enough for two and a half, of which a tenth must remain.
  await base.chain.setBalance(relaying.relayer.address, (reserved * 26n) / 10n);
  const fresh = relaying.another();
  await send(fresh);
  await expect(send(fresh)).rejects.toThrow(/has no gas/);
  expect(await hashes()).toEqual([1, 1]);
});

test("A transaction with a fee limit waits while gas costs more, and one without a limit is sent", async () => {
  await base.fees(50);
  const fresh = relaying.another();
  await expect(send(fresh, PROFILE.baseFee * 40n)).rejects.toThrow(/waits until gas is cheaper/);
  expect(await relaying.rows()).toEqual([]);
  const most = PROFILE.baseFee * 52n;
  expect((await client.getTransaction({ hash: await send(fresh, most) })).maxFeePerGas).toBe(most);
  expect(await isMined(await send(fresh))).toBe(true);
});
