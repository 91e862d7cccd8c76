import { randomUUID } from "node:crypto";
import { decodeFunctionData, encodeFunctionData, type Hex, type LocalAccount, size } from "viem";
import { beforeEach, describe, expect, test } from "vitest";
import { createJournal } from "../../../api/payments/journal/journal-store.ts";
import type { Batching } from "../../../api/payments/settle/batching-chain.ts";
import type { Payment } from "../../../api/payments/settle/facilitator-chain.ts";
import { batchCall } from "../../../api/payments/settle/settlement-batch.ts";
import { createSeal } from "../../../api/platform/db/seal.ts";
import { settlementBatchAbi } from "../../../contracts/settlement-batch.ts";
import { USDC_ABI } from "../../../scripts/embedded/usdc.ts";
import { startBaseLike } from "../../support/base-like/base-like.ts";
import { BASE as PROFILE } from "../../support/base-like/profiles.ts";
import { rawToUsdc, reorganize } from "../../support/chain/blocks.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { newPayment, WRITES } from "../../support/payments/journal-rows.ts";
import { chargedOnce, nothingCharged } from "../../support/payments/on-chain.ts";
import { paymentOf, type Relaying, startBatching, startRelaying } from "../../support/payments/relaying.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { PAY_TO } from "../../support/service/environment.ts";

// A batch between its commit and a final block. The test controls time and upkeep passes.

const base = await forFile(startBaseLike({ profile: { ...PROFILE, backends: [{ lagMs: 0 }] } }));
const { chain } = base;
const { client } = chain;
const SEAL = createSeal(Buffer.alloc(32, 3));
const ITEM_BYTES = 134;

let relaying: Relaying;
beforeEach(async () => {
  await base.resume();
  await base.fees(1);
  relaying = await startRelaying(base.url);
  await chain.setBalance(relaying.relayer.address, 10n ** 18n);
  return () => relaying.stop();
});

/** Creates payments of new payers in a process that batches up to `most` and has simulated all of them successfully. */
async function passed(count: number, most = count - 1) {
  const payers: LocalAccount[] = [];
  while (payers.length < count) payers.push(await newPayer(chain));
  const validBefore = base.unixNow() + 7_200n;
  const payments = await Promise.all(payers.map(async (payer) => paymentOf(await signPayment(payer, { validBefore }))));
  const { batching, sent } = startBatching({ rpcUrl: base.url, relayer: relaying.relayer, policy: { most } });
  const heads = await Promise.all(payments.map(({ transfer }) => batching.simulate(transfer)));
  expect(heads.map((head) => head !== null)).toEqual(payments.map(() => true));
  return { batching, payers, payments, sent };
}

/** Puts two transactions in the pool, one with the first payment and one with all the others. */
async function pooled(batching: Batching, [first, ...others]: readonly Payment[]) {
  base.halt();
  const outcomes = [batching.submit(first as Payment)];
  await eventually(() => base.pool.waiting().length, 1);
  outcomes.push(...others.map((payment) => batching.submit(payment)));
  await eventually(() => base.pool.waiting().length, 2);
  return { settled: Promise.allSettled(outcomes), batch: base.pool.waiting()[1] as Hex };
}

const allSettled = (payments: readonly Payment[]) => payments.map(() => ({ status: "fulfilled", value: true }));
const hashes = async () => (await relaying.rows()).map((row) => row.hashes.length);
const sentByUs = () => client.getTransactionCount({ address: relaying.relayer.address });

async function expectChargedOnce(payments: readonly Payment[]): Promise<void> {
  for (const { transfer } of payments) await chargedOnce(chain, transfer);
}

const batchOf = (payments: readonly Payment[]) =>
  batchCall(
    { usdc: chain.network.usdc.address, payTo: PAY_TO },
    payments.map(({ transfer }) => transfer),
  );

/** Returns the number of payments that a batch's calldata settles. */
async function itemsOf(hash: Hex): Promise<number> {
  const { input } = await client.getTransaction({ hash });
  const [, , , items] = decodeFunctionData({ abi: settlementBatchAbi, data: input }).args as readonly Hex[];
  return size(items ?? "0x") / ITEM_BYTES;
}

test("A batch whose nonce was taken by another use of the key frees its payments once that is final, and each is sent again once", async () => {
  const { batching, payments } = await passed(4);
  const account = relaying.relayer.address;
  await pooled(batching, payments);
  base.pool.forget();
  await client.impersonateAccount({ address: account });
  for (const nonce of [0, 1]) await client.sendTransaction({ account, to: account, nonce });
  await base.resume();
  const again = () =>
    relaying.another().ship({
      lane: "batch",
      members: payments,
      callFor: (purposes) => batchOf(payments.filter(({ purpose }) => purposes.includes(purpose))),
    });
  await again();
  expect([await hashes(), await sentByUs()]).toEqual([[1, 1], 2]);
  await base.pass(16);
  await relaying.tendAfter(31, relaying.another());
  const carriers = new Set((await again()).values());
  await expectChargedOnce(payments);
  expect([carriers.size, await hashes(), await sentByUs()]).toEqual([1, [1, 1, 1], 3]);
});

describe("A batch replaced during a fee spike, with the same nonce and calldata", () => {
  test.each([
    ["replacement", 1],
    ["original", 0],
  ] as const)("Each payment is charged once and reported when the %s is mined", async (_, mined) => {
    const { batching, payments } = await passed(4);
    const { settled, batch } = await pooled(batching, payments);
    await base.fees(50);
    await base.resume();
    await base.pass(1);
    // The replacements never reach the pool, so it still has the originals.
    if (mined === 0) base.pool.treat("swallowed", 2);
    await relaying.tendAfter(31, relaying.another());
    const rows = await relaying.rows();
    expect(rows.map((row) => [row.nonce, row.hashes.length])).toEqual([
      [0, 2],
      [1, 2],
    ]);
    expect(rows[1]?.hashes[0]).toBe(batch);
    if (mined === 0) await base.fees(1);
    await base.pass(1);
    expect(await settled).toEqual(allSettled(payments));
    await expectChargedOnce(payments);
    const hash = rows[1]?.hashes[mined] as Hex;
    expect([(await client.getTransactionReceipt({ hash })).status, await itemsOf(hash)]).toEqual(["success", 3]);
    for (let pass = 0; pass < 3; pass++) await relaying.tendAfter(31, relaying.another());
    expect([await hashes(), await sentByUs()]).toEqual([[2, 2], 2]);
    for (const { purpose } of payments) expect(await relaying.relayer.failed(purpose)).toBeNull();
    expect([relaying.counted.replaced, relaying.counted.mined.length]).toEqual([2, 2]);
  });
});

test("A batch that a reorganization removed is broadcast again, and its failed payments are read again", async () => {
  const { batching, payers, payments } = await passed(4);
  const [payer, payment] = [payers[2] as LocalAccount, payments[2] as Payment];
  const neighbors = payments.filter((one) => one !== payment);
  await chain.setBalance(payer.address, 10n ** 18n);
  await base.pass(0.2);
  const { settled, batch } = await pooled(batching, payments);
  await base.resume();
  expect(await settled).toEqual(allSettled(payments));
  /** Runs the passes in which the upkeep sees that the block is gone, broadcasts again, and finds the new block. */
  const tended = async () => {
    for (let pass = 0; pass < 3; pass++) await relaying.tendAfter(31, relaying.another());
  };
  const failures = () => Promise.all(payments.map(({ purpose }) => relaying.relayer.failed(purpose)));
  await tended();

  await reorganize(chain, 2, []);
  await expect(chargedOnce(chain, payment.transfer)).rejects.toThrow();
  const data = encodeFunctionData({
    abi: USDC_ABI,
    functionName: "transfer",
    args: [payers[0]?.address ?? "0x", 9_900_000n],
  });
  await client.sendRawTransaction({ serializedTransaction: await rawToUsdc(chain, { by: payer, data }) });
  await tended();
  await nothingCharged(chain, payer);
  await expectChargedOnce(neighbors);
  expect(await failures()).toEqual([null, null, batch, null]);
  await expect(batching.submit(payment)).rejects.toThrow(/mined and reverted/);

  await reorganize(chain, 3, []);
  await tended();
  await expectChargedOnce(payments);
  expect(await failures()).toEqual([null, null, null, null]);
  expect([await hashes(), await sentByUs()]).toEqual([[1, 1], 2]);
  const batches = relaying.counted.mined.filter(({ payments: count }) => count === 3);
  expect(batches.map(({ failed }) => failed)).toEqual([0, 1, 0]);
});

test("A batch has one item per purpose, however many runs wait for it, and none for a purpose without a live lease", async () => {
  const journal = createJournal(relaying.pool, SEAL);
  const { batching, payments, sent: batches } = await passed(4, 6);
  const [first, twice, lost, held] = payments as [Payment, Payment, Payment, Payment];
  /** Returns the payment as the run that now has its lease sees it, and as a run that lost the lease sees it. */
  const leased = async (payment: Payment) => {
    const { from, nonce, ...terms } = payment.transfer.authorization;
    const entered = newPayment({ ...terms, payTo: terms.to, payer: from.toLowerCase() as Hex });
    const key = { ...entered.key, nonce };
    const token = randomUUID();
    await journal.insert({ ...entered, key }, token);
    await journal.write(key, token, { ...WRITES.leave, kept: entered });
    return [
      { ...payment, lease: { key, token } },
      { ...payment, lease: { key, token: randomUUID() } },
    ] as const;
  };
  const [[now, before], [, gone], [own]] = [await leased(twice), await leased(lost), await leased(held)];
  const { settled, batch } = await pooled(batching, [first, before, now, now, gone, own, own]);
  await base.resume();
  const sent = { status: "fulfilled", value: true };
  const nothing = {
    status: "rejected",
    reason: new Error("nothing was sent, because another run is working on this payment"),
  };
  expect(await settled).toEqual([sent, sent, sent, sent, nothing, sent, sent]);
  expect(await itemsOf(batch)).toBe(2);
  expect(batches.map(({ payments: count, skipped }) => [count, skipped])).toEqual([[2, 1]]);
  await expectChargedOnce([first, twice, held]);
  await nothingCharged(chain, lost.transfer.authorization.from);
  expect(await sentByUs()).toBe(2);
});
