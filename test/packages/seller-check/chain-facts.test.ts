import fc from "fast-check";
import type { Address, Hex } from "viem";
import { expect, test } from "vitest";
import { factsOf } from "../../../packages/seller-check/src/exam/chain-facts.ts";
import { openExamWallet } from "../../../packages/seller-check/src/exam/exam-wallet.ts";
import type { Bar, Ledger, Settled } from "../../../packages/seller-check/src/exam/ledger.ts";
import { ExaminersFault } from "../../../packages/seller-check/src/exam/ledger.ts";
import type { Payment } from "../../../packages/seller-check/src/exam/payment.ts";
import type { Terms } from "../../../packages/seller-check/src/exam/terms.ts";

const [ASSET, PAYER, SHOP] = ["aa", "bb", "cc"].map((byte) => `0x${byte.repeat(20)}` as Address) as [
  Address,
  Address,
  Address,
];
const NONCES = ["01", "02", "03"].map((byte) => `0x${byte.repeat(32)}` as Hex);
const BLOCK_SECONDS = 2;
const NONE: ReadonlySet<Bar> = new Set();

/** A node that responds to one call: how far it is behind, and whether it still has its logs. */
interface Replier {
  readonly lag: number;
  readonly hasLogs: boolean;
}

/** A chain of blocks behind nodes that take turns. Nonce `n` is used in block `usedAt[n]`, or never if that is null. */
function chainOf(head: number, usedAt: readonly (number | null)[], nodes: readonly Replier[]): Ledger {
  let turn = 0;
  const next = () => {
    const { lag, hasLogs } = nodes[turn++ % nodes.length] ?? { lag: 0, hasLogs: true };
    return { block: Math.max(0, head - lag), hasLogs };
  };
  const isUsed = (nonce: Hex, block: number) => (usedAt[NONCES.indexOf(nonce)] ?? Number.POSITIVE_INFINITY) <= block;
  return {
    network: "eip155:8453",
    mayLag: true,
    block: async () => BigInt(next().block),
    now: async () => next().block * BLOCK_SECONDS,
    read: async ({ nonces }) => {
      const { block } = next();
      const used = nonces.filter((nonce) => isUsed(nonce, block));
      return { time: block * BLOCK_SECONDS, balance: BigInt(1_000 - used.length), used: new Set(used), bars: NONE };
    },
    hold: async () => "not_held",
    transfer: async ({ nonce }) => {
      const { block, hasLogs } = next();
      return hasLogs && isUsed(nonce, block) ? settledBy(nonce) : null;
    },
  };
}

const settledBy = (nonce: Hex): Settled => ({ transaction: nonce, block: 1n, to: SHOP, value: 1n });

const node = fc.record({ lag: fc.integer({ min: 0, max: 60 }), hasLogs: fc.boolean() });
const used = fc.option(fc.integer({ min: 1, max: 100 }), { nil: null });
const scene = fc.record({
  usedAt: fc.tuple(used, used, used),
  nodes: fc.array(node, { minLength: 1, maxLength: 4 }),
  since: fc.integer({ min: 0, max: 100 }),
});

const ask = (ledger: Ledger, notBefore: number) =>
  factsOf(ledger, { asset: ASSET, from: PAYER, nonces: NONCES, since: 0n, notBefore, now: 0 });

test("With nodes that lag or lose logs, every reported fact about a payment was true at the required time", async () => {
  await fc.assert(
    fc.asyncProperty(scene, async ({ usedAt, nodes, since }) => {
      const facts = await ask(chainOf(100, usedAt, nodes), since * BLOCK_SECONDS);
      if (facts === null) return;
      NONCES.forEach((nonce, place) => {
        const at = usedAt[place] ?? null;
        if (at !== null && at <= since) expect(facts.settled.get(nonce)).toEqual(settledBy(nonce));
        if (at === null) expect(facts.settled.has(nonce)).toBe(false);
      });
    }),
    { numRuns: 2_000 },
  );
});

test.each<[string, readonly Replier[], readonly [number, boolean]]>([
  ["nodes that keep up", [{ lag: 0, hasLogs: true }], [100, true]],
  ["nodes a little behind", [{ lag: 1, hasLogs: true }], [99, true]],
  ["a node that has not reached the block", [{ lag: 1, hasLogs: true }], [100, false]],
  [
    "one of three nodes that has not reached the block",
    [
      { lag: 0, hasLogs: true },
      { lag: 0, hasLogs: true },
      { lag: 30, hasLogs: true },
    ],
    [100, false],
  ],
  ["nodes without logs", [{ lag: 0, hasLogs: false }], [100, false]],
])(
  "With %s (%j), facts are returned only if every node has the logs up to the required block: %j",
  async (_, nodes, [since, isTold]) => {
    const facts = await ask(chainOf(100, [50, null, null], nodes), since * BLOCK_SECONDS);
    expect(facts !== null).toBe(isTold);
    if (facts !== null) expect([...facts.settled.keys()]).toEqual([NONCES[0]]);
  },
);

test("Nodes that disagree about a payment give no facts, even if they are late", async () => {
  const nodes = [
    { lag: 0, hasLogs: true },
    { lag: 5, hasLogs: true },
  ];
  expect(await ask(chainOf(100, [98, null, null], nodes), 0)).toBeNull();
});

test("An obstacle to payments is reported if all readings show it, and no facts are returned if they differ", async () => {
  const chain = chainOf(100, [null, null, null], [{ lag: 0, hasLogs: true }]);
  const shown = (...bars: readonly (readonly Bar[])[]) => {
    let turn = 0;
    const read: Ledger["read"] = async (asked) => ({
      ...(await chain.read(asked)),
      bars: new Set(bars[turn++ % bars.length]),
    });
    return ask({ ...chain, read }, 0);
  };
  expect((await shown(["payee", "paused"]))?.bars).toEqual(new Set(["paused", "payee"]));
  expect(await shown(["paused"], [], [])).toBeNull();
  expect(await shown(["paused"], ["payer"], ["paused"])).toBeNull();
});

test("A local node is authoritative although its clock may stop between transactions", async () => {
  const ledger = { ...chainOf(10, [5, null, null], [{ lag: 0, hasLogs: true }]), mayLag: false };
  const asked = { asset: ASSET, from: PAYER, nonces: NONCES, since: 0n, notBefore: 1_000 };
  expect((await factsOf(ledger, { ...asked, now: 1_000 }))?.settled.size).toBe(1);
  expect(await factsOf(ledger, { ...asked, now: 999 })).toBeNull();
});

const NONCE: Hex = `0x${"01".repeat(32)}`;
const SETTLED: Settled = { transaction: NONCE, block: 1n, to: SHOP, value: 5n };
const TERMS = { asset: `0x${"aa".repeat(20)}` as Address, payTo: SHOP, amount: 5n } as Terms;
const PAYMENT = { authorization: { from: PAYER, to: SHOP, value: 5n, nonce: NONCE } } as Payment;
const BARS: ReadonlySet<Bar> = new Set();
const ANSWERED_AT = 1_000;

interface Scene {
  /** Seconds that the chain is behind the clock. */
  readonly lag?: number;
  /** Returns whether the payment is on the chain at this second. */
  readonly isPaid?: (second: number) => boolean;
  /** The end of the exam, in seconds. */
  readonly endsAt?: number;
}

/** An exam wallet directly after the last response, on a clock that advances while it sleeps. */
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
  const wallet = await openExamWallet(parts, { payments: [PAYMENT], answeredAt: () => ANSWERED_AT });
  wallet.noted(NONCE);
  return { wallet, elapsed: () => second - ANSWERED_AT };
}

test("After an exam without time left, the chain still gets 30 seconds from the last response", async () => {
  const { wallet } = await afterTheLastAnswer({});
  expect((await wallet.facts(TERMS)).settled.size).toBe(0);
  const still = await afterTheLastAnswer({ lag: 1_000 });
  await expect(still.wallet.facts(TERMS)).rejects.toThrow(ExaminersFault);
  expect(still.elapsed()).toBe(30);
});

test("A payment that was shown and is gone at the end gives no verdict unless it comes back", async () => {
  const gone = await afterTheLastAnswer({ isPaid: (second) => second === ANSWERED_AT });
  expect(await gone.wallet.isShown(TERMS, PAYMENT)).toBe(true);
  await expect(gone.wallet.facts(TERMS)).rejects.toThrow(/does not show the outcome/);
  const back = await afterTheLastAnswer({ isPaid: (second) => second === ANSWERED_AT || second > ANSWERED_AT + 10 });
  expect(await back.wallet.isShown(TERMS, PAYMENT)).toBe(true);
  expect((await back.wallet.facts(TERMS)).settled.get(NONCE)).toEqual(SETTLED);
  const never = await afterTheLastAnswer({ isPaid: (second) => second < ANSWERED_AT });
  expect((await never.wallet.facts(TERMS)).settled.size).toBe(0);
});
