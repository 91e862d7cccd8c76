import type { Address, Hex } from "viem";
import { expect, test } from "vitest";
import { openExamWallet } from "../../../packages/seller-check/src/exam/exam-wallet.ts";
import { ExaminersFault } from "../../../packages/seller-check/src/exam/examiners-fault.ts";
import type { Bar, Ledger, Settled } from "../../../packages/seller-check/src/exam/ledger.ts";
import type { Payment } from "../../../packages/seller-check/src/exam/payment.ts";
import type { Terms } from "../../../packages/seller-check/src/exam/terms.ts";

const [PAYER, SHOP] = [`0x${"bb".repeat(20)}`, `0x${"cc".repeat(20)}`] as const;
const NONCE: Hex = `0x${"01".repeat(32)}`;
const SETTLED: Settled = { transaction: NONCE, block: 1n, to: SHOP, value: 5n };
const TERMS = { asset: `0x${"aa".repeat(20)}` as Address, payTo: SHOP, amount: 5n } as Terms;
const PAYMENT = { authorization: { from: PAYER, to: SHOP, value: 5n, nonce: NONCE } } as Payment;
const BARS: ReadonlySet<Bar> = new Set();
const ANSWERED_AT = 1_000;

interface Scene {
  /** How many seconds the chain is behind the clock. */
  readonly lag?: number;
  /** In which seconds the payment is on the chain. */
  readonly isPaid?: (second: number) => boolean;
  /** When the exam's time ends, in seconds. */
  readonly endsAt?: number;
}

/** A till right after the last answer, on time that passes while it sleeps. */
async function afterTheLastAnswer({ lag = 3, isPaid = () => false, endsAt = ANSWERED_AT - 60 }: Scene) {
  let second = ANSWERED_AT;
  const ledger: Ledger = {
    network: "eip155:8453",
    mayLag: true,
    block: async () => 0n,
    now: async () => second - lag,
    read: async () => ({
      ...{ time: second - lag, balance: 100n, bars: BARS },
      used: new Set(isPaid(second) ? [NONCE] : []),
    }),
    hold: async () => "not_held",
    transfer: async () => (isPaid(second) ? SETTLED : null),
  };
  const sleep = async (ms: number) => {
    second += ms / 1_000;
  };
  const parts = { ledger, payer: { address: PAYER }, sleep, now: () => second * 1_000, endsAt: endsAt * 1_000 };
  const till = await openExamWallet(parts, { payments: [PAYMENT], answeredAt: () => ANSWERED_AT });
  till.noted(NONCE);
  return { till, elapsed: () => second - ANSWERED_AT };
}

test("a seller that used up an exam's time is judged all the same: the chain gets 30 seconds after the last answer", async () => {
  const { till } = await afterTheLastAnswer({});
  expect((await till.facts(TERMS)).settled.size).toBe(0);
  const still = await afterTheLastAnswer({ lag: 1_000 });
  await expect(still.till.facts(TERMS)).rejects.toThrow(ExaminersFault);
  expect(still.elapsed()).toBe(30);
});

test("a payment that was shown and is gone at the end says nothing, unless it comes back", async () => {
  const gone = await afterTheLastAnswer({ isPaid: (second) => second === ANSWERED_AT });
  expect(await gone.till.isShown(TERMS, PAYMENT)).toBe(true);
  await expect(gone.till.facts(TERMS)).rejects.toThrow(/does not show what became/);
  const back = await afterTheLastAnswer({ isPaid: (second) => second === ANSWERED_AT || second > ANSWERED_AT + 10 });
  expect(await back.till.isShown(TERMS, PAYMENT)).toBe(true);
  expect((await back.till.facts(TERMS)).settled.get(NONCE)).toEqual(SETTLED);
  const never = await afterTheLastAnswer({ isPaid: (second) => second < ANSWERED_AT });
  expect((await never.till.facts(TERMS)).settled.size).toBe(0);
});
