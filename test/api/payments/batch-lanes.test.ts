import type { Hex, LocalAccount } from "viem";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Payment } from "../../../api/payments/settle/facilitator-chain.ts";
import { SETTLEMENT_BATCH } from "../../../contracts/settlement-batch.ts";
import { startBaseLike } from "../../support/base-like/base-like.ts";
import { BASE as PROFILE } from "../../support/base-like/profiles.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { paymentOf, type Relaying, startBatching, startRelaying } from "../../support/payments/relaying.ts";
import { highS, newPayer, signPayment } from "../../support/payments/signing.ts";

// The conditions for payments to share a transaction.

const base = await forFile(startBaseLike({ profile: { ...PROFILE, backends: [{ lagMs: 0 }] } }));
const { chain } = base;
const { client } = chain;
const { address } = SETTLEMENT_BATCH;
const code = (await client.getCode({ address })) as Hex;
const MINUTE = 60_000;
/** A margin for the real time that a test takes. */
const LEFT_MS = 20_000;
const ELSEWHERE = "0x000000000000000000000000000000000000dEaD";

const payers: LocalAccount[] = [];
while (payers.length < 4) payers.push(await newPayer(chain));
const [ann, ben, cem, dan] = payers as [LocalAccount, LocalAccount, LocalAccount, LocalAccount];

const now = performance.now.bind(performance);
let ahead = 0;
vi.spyOn(performance, "now").mockImplementation(() => now() + ahead);

let relaying: Relaying;
beforeEach(async () => {
  relaying = await startRelaying(base.url);
  await chain.setBalance(relaying.relayer.address, 10n ** 18n);
  return () => relaying.stop();
});
afterEach(async () => {
  base.become(null);
  await base.resume();
  await client.setCode({ address, bytecode: code });
});

/** Advances the process's clock. It never goes back. */
const later = (ms: number) => {
  ahead += ms;
};
const begin = (most = 2) => startBatching({ rpcUrl: base.url, relayer: relaying.relayer, policy: { most } });
type Process = ReturnType<typeof begin>;

const payment = async (payer: LocalAccount, fields: Parameters<typeof signPayment>[1] = {}): Promise<Payment> =>
  paymentOf(await signPayment(payer, { validBefore: base.unixNow() + 80_000n, ...fields }));
const threePayments = () =>
  Promise.all([ann, ben, cem].map((payer) => payment(payer))) as Promise<[Payment, Payment, Payment]>;

const passes = async ({ batching }: Process, ...given: readonly Payment[]) =>
  (await Promise.all(given.map(({ transfer }) => batching.simulate(transfer)))).map((head) => head !== null);
const batches = () => relaying.counted.mined.filter(({ payments }) => payments > 1);
const another = async (process: Process) => (await passes(process, await payment(dan)))[0];

/** Submits the first payment alone and the next two in one transaction. Runs `meanwhile` before they are mined. */
async function shared({ batching }: Process, given: readonly Payment[], meanwhile: () => Promise<void>) {
  const [first, ...others] = given as [Payment, ...Payment[]];
  base.halt();
  const outcomes = [batching.submit(first)];
  await eventually(() => base.pool.waiting().length, 1);
  outcomes.push(...others.map((one) => batching.submit(one)));
  await eventually(() => base.pool.waiting().length, 2);
  await meanwhile();
  await base.resume();
  expect(await Promise.all(outcomes)).toEqual([true, true, true]);
}

describe("Sharing a transaction", () => {
  test("Only a valid, simulated payment may share a transaction, and an invalid one does not prevent others from sharing", async () => {
    const process = begin();
    const [good, twin, other] = await threePayments();
    const signedBy = ({ transfer, purpose }: Payment, signature: Hex): Payment => ({
      purpose,
      transfer: { ...transfer, signature },
    });
    const unfit = [
      await payment(ann, { value: 10_000_001n }),
      await payment(ann, { to: ELSEWHERE }),
      signedBy(twin, highS(twin.transfer.signature)),
      signedBy(other, `${other.transfer.signature}00`),
    ];
    expect(await passes(process, ...unfit, good)).toEqual([false, false, false, false, true]);
    // The payer's other payment has not been simulated.
    const longer = signedBy(good, `${good.transfer.signature}00`);
    for (const one of [...unfit, longer, await payment(ann)]) expect(await process.batching.submit(one)).toBe(false);
    expect(await relaying.rows()).toEqual([]);
  });

  test("A simulation allows sharing for one minute", async () => {
    const process = begin();
    const [one, two] = await threePayments();
    expect(await passes(process, one, two)).toEqual([true, true]);
    later(MINUTE - LEFT_MS);
    expect(await process.batching.submit(one)).toBe(true);
    later(LEFT_MS);
    expect(await process.batching.submit(two)).toBe(false);
  });

  test("A payer whose payment failed in a batch pays alone for an hour, and its neighbors continue to share", async () => {
    const process = begin();
    const given = await threePayments();
    const next = await threePayments();
    expect(await passes(process, ...given, ...next)).toEqual(Array(6).fill(true));
    await shared(process, given, () => chain.blacklist(cem.address));
    await chain.unblacklist(cem.address);
    expect(batches()).toMatchObject([{ payments: 2, failed: 1 }]);
    expect(await process.batching.submit(next[2])).toBe(false);
    expect(await passes(process, ...(await threePayments()))).toEqual([true, true, false]);
    later(60 * MINUTE);
    expect(await passes(process, ...(await threePayments()))).toEqual([true, true, true]);
  });
});

describe("Pauses of batching", () => {
  test("A batch that reverted as a whole pauses batching for ten minutes, and its payers pay alone for an hour", async () => {
    const process = begin();
    const given = await threePayments();
    expect(await passes(process, ...given)).toEqual([true, true, true]);
    await shared(process, given, () => client.setCode({ address, bytecode: "0x5f5ffd" }));
    await client.setCode({ address, bytecode: code });
    expect([batches(), process.isOn]).toMatchObject([[{ payments: 2, failed: 2 }], [true, false]]);
    for (const { purpose } of given.slice(1)) expect(await relaying.relayer.failed(purpose)).not.toBeNull();
    expect(await another(process)).toBe(false);
    later(10 * MINUTE - LEFT_MS);
    expect(await another(process)).toBe(false);
    later(LEFT_MS);
    expect(await passes(process, await payment(ann), await payment(ben), await payment(dan))).toEqual([
      true,
      false,
      true,
    ]);
    expect(process.isOn).toEqual([true, false, true]);
  });

  test("A missing or different batch contract pauses batching for ten minutes after one code check without a simulation", async () => {
    for (const bytecode of ["0x", "0x5f5ffd"] as const) {
      await client.setCode({ address, bytecode });
      const process = begin();
      base.calls.reset();
      expect([await another(process), await another(process)]).toEqual([false, false]);
      expect(base.calls.byMethod()).toEqual({ eth_getCode: 1 });
      await client.setCode({ address, bytecode: code });
      later(10 * MINUTE - LEFT_MS);
      expect(await another(process)).toBe(false);
      later(LEFT_MS);
      expect([await another(process), await another(process)]).toEqual([true, true]);
      expect([base.calls.byMethod().eth_getCode, process.isOn]).toEqual([2, [false, true]]);
    }
  });
});
