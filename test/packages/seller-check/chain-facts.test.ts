import fc from "fast-check";
import type { Address, Hex } from "viem";
import { expect, test } from "vitest";
import { factsOf } from "../../../packages/seller-check/src/exam/chain-facts.ts";
import { openExamWallet } from "../../../packages/seller-check/src/exam/exam-wallet.ts";
import { ExaminersFault } from "../../../packages/seller-check/src/exam/examiners-fault.ts";
import type { Bar, Ledger, Settled } from "../../../packages/seller-check/src/exam/ledger.ts";
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

/** Where a node stands that answers one call: how far behind, and whether it has lost its logs. */
interface Replier {
  readonly lag: number;
  readonly hasLogs: boolean;
}

/** A chain of blocks behind nodes that take turns. Use `n` of a nonce is in block `usedAt[n]`; null for never. */
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

test("whatever nodes lag or lose, what is said of a payment was true when it had to be", async () => {
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
  ["a node that has not come so far", [{ lag: 1, hasLogs: true }], [100, false]],
  [
    "one of three that has not come so far",
    [
      { lag: 0, hasLogs: true },
      { lag: 0, hasLogs: true },
      { lag: 30, hasLogs: true },
    ],
    [100, false],
  ],
  ["nodes without logs", [{ lag: 0, hasLogs: false }], [100, false]],
])("with %s a use in block 50 is told from a block on or not: %j %j", async (_, nodes, [since, isTold]) => {
  const facts = await ask(chainOf(100, [50, null, null], nodes), since * BLOCK_SECONDS);
  expect(facts !== null).toBe(isTold);
  if (facts !== null) expect([...facts.settled.keys()]).toEqual([NONCES[0]]);
});

test("nodes that disagree about a payment say nothing, however late they are", async () => {
  const nodes = [
    { lag: 0, hasLogs: true },
    { lag: 5, hasLogs: true },
  ];
  expect(await ask(chainOf(100, [98, null, null], nodes), 0)).toBeNull();
});

test("what bars payments is told where all readings show it, and not at all where they differ", async () => {
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

test("a local node is the chain: its clock may stand still between transactions", async () => {
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
