import fc from "fast-check";
import { expect, test } from "vitest";
import { findSettlement } from "../../../../api/platform/chain/authorizations.ts";
import { settlementState } from "../../../../api/platform/chain/chain.ts";
import { createAllowance } from "../../../../api/platform/chain/pace.ts";
import type { Settlement, View } from "../../../../api/platform/chain/view.ts";
import {
  type Branch,
  expectedUntil,
  FINAL_AFTER,
  type NodeKind,
  type Outcome,
  type Scene,
  threeNodes,
  timeOf,
  tokenOf,
  type World,
  worldWith,
} from "../../../support/settlement-status/branching-chain.ts";

// The gate's final conclusions about a payment, read from nodes that lag on abandoned branches.

const CALLS_A_LOOK = 4;
/** Longer than the final block is cached. */
const LOOK_AGAIN_MS = 2_100;

/** Returns the outcome only if it happens before the payment's window closes. */
const inTime = ({ end }: World, outcome: Outcome | null): Outcome | null =>
  outcome !== null && outcome.block < end ? outcome : null;

interface Concluded {
  readonly view: View;
  readonly head: number;
  /** Whether this is the last lookup after the last reorganization. */
  readonly isLast: boolean;
}

function process(branches: readonly Branch[], scene: Scene, end: number) {
  const { token, counted } = tokenOf(branches, scene);
  let settlement: Settlement | null = null;
  return {
    /** Returns null while the chain is unreachable. */
    async look(): Promise<View | null> {
      Object.assign(counted, { calls: 0, ms: counted.ms + LOOK_AGAIN_MS });
      const found = await findSettlement(token, expectedUntil(end), createAllowance(CALLS_A_LOOK)).catch(() => null);
      expect(counted.calls).toBeLessThanOrEqual(CALLS_A_LOOK);
      if (found?.view.nonce === "paid") ({ settlement } = found.view);
      return found?.view ?? null;
    },
    /** Returns the settlement's last known block if it is final now, or null. */
    async finalBlock(): Promise<number | null> {
      if (settlement === null) return null;
      const { block } = settlement;
      return (await settlementState(token.client, token.finality.confirmed, settlement)) === "final" ? block : null;
    },
  };
}

/** Looks the payment up with a long-running process and with a new one at each moment. */
async function play(given: World, each: (concluded: Concluded, expected: Outcome | null) => void): Promise<void> {
  const branches = given.branches.map((branch) => ({ ...branch, outcome: inTime(given, branch.outcome) }));
  const expected = branches.at(-1)?.outcome ?? null;
  const scene: Scene = { head: 0, nodes: [], areOnBranch: false };
  const first = process(branches, scene, given.end);
  for (const { grown, nodes } of given.moments) {
    Object.assign(scene, { head: scene.head + grown, nodes });
    const isLast = branches.every(({ since }) => since <= scene.head);
    for (const one of [first, process(branches, scene, given.end)])
      for (let look = 0; look < 3; look++) {
        const view = await one.look();
        if (view !== null) each({ view, head: scene.head, isLast: isLast && look === 2 }, expected);
        const block = await one.finalBlock();
        if (block !== null) expect({ block, isPaid: true }).toEqual(asPaid(expected));
      }
  }
}

const asPaid = (outcome: Outcome | null) => ({ block: outcome?.block, isPaid: outcome?.isCanceled === false });

function expectTrue(view: View, expected: Outcome | null): void {
  if (view.nonce === "dead")
    expect(view.reason).toBe(expected === null ? "expired" : expected.isCanceled && "nonce_consumed");
  if (view.nonce === "paid" && view.final)
    expect({ block: view.settlement.block, isPaid: true }).toEqual(asPaid(expected));
}

test("While one of three nodes is up to date, no final conclusion contradicts the chain", async () => {
  const seen = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(worldWith(threeNodes), (given) =>
      play(given, ({ view }, expected) => {
        const word = view.nonce === "dead" ? view.reason : view.nonce === "paid" && view.final ? "final" : view.nonce;
        seen.set(word, (seen.get(word) ?? 0) + 1);
        expectTrue(view, expected);
      }),
    ),
    { numRuns: 1_500 },
  );
  for (const word of ["unused", "paid", "final", "expired", "nonce_consumed"])
    expect(seen.get(word), word).toBeGreaterThan(20);
});

test("While all nodes are up to date, three lookups reach the final conclusion", async () => {
  const nodes = fc.constant<readonly NodeKind[]>([0]);
  let final = 0;
  await fc.assert(
    fc.asyncProperty(worldWith(nodes), (given) =>
      play(given, ({ view, isLast, head }, expected) => {
        expectTrue(view, expected);
        if (!isLast || head < (expected?.block ?? given.end) + FINAL_AFTER) return;
        final++;
        expect(view.nonce === "dead" || (view.nonce === "paid" && view.final)).toBe(true);
      }),
    ),
    { numRuns: 300 },
  );
  expect(final).toBeGreaterThan(100);
});

/** The payment is in block 500. On the abandoned branch it is missing, and its window has closed. */
const REPLACED: readonly Branch[] = [
  { since: 0, fork: 0, outcome: null },
  { since: 901, fork: 460, outcome: { block: 500, isCanceled: false } },
];
/** The same, but on the abandoned branch the payer has canceled it. */
const CANCELED: readonly Branch[] = [
  { since: 0, fork: 0, outcome: { block: 500, isCanceled: true } },
  ...REPLACED.slice(1),
];

test.each([
  ["does not show it", REPLACED],
  ["shows it canceled", CANCELED],
])("Two lagging nodes on a branch that %s do not cause a refusal", async (_, branches) => {
  const scene: Scene = { head: 1_000, nodes: [0], areOnBranch: false };
  const one = process(branches, scene, 520);
  // Caches the final block, so that the next lookup does not read it.
  for (let look = 0; look < 2; look++) expect(await one.look()).toMatchObject({ nonce: "paid" });
  scene.nodes = [100, 100, 0];
  expect((await one.look())?.nonce).not.toBe("dead");
  scene.nodes = [0];
  expect(await one.look()).toMatchObject({ nonce: "paid", final: true, settlement: { block: 500 } });
});

test("Two lagging nodes do not cause a refusal if another node reports the final block in between", async () => {
  const scene: Scene = { head: 968, nodes: [0], areOnBranch: false };
  const one = process(REPLACED, scene, 520);
  for (const head of [968, 970]) {
    scene.head = head;
    expect(await one.look()).toMatchObject({ nonce: "paid" });
    // Reads the final block.
    await one.finalBlock();
  }
  scene.nodes = [100, 0, 100, 100];
  expect(await one.look()).toEqual({ nonce: "unused" });
});

test("One wrong reading does not expire a payment while the other nodes are behind the final block", async () => {
  const scene: Scene = { head: 1_000, nodes: [0], areOnBranch: false };
  const one = process([{ since: 0, fork: 0, outcome: { block: 500, isCanceled: false } }], scene, 520);
  for (let look = 0; look < 2; look++) expect(await one.look()).toMatchObject({ nonce: "paid" });
  scene.nodes = ["stale", 900, 900];
  expect(await one.look()).toEqual({ nonce: "unused" });
});

/**
 * Looks up a payment without a row. It is in block 500 or never paid, and its window closed at the time of block 520.
 */
async function lookOfUnknown(outcome: Outcome | null, nodes: readonly NodeKind[], head = 560) {
  const scene: Scene = { head, nodes, areOnBranch: false };
  const { token, counted } = tokenOf([{ since: 0, fork: 0, outcome }], scene);
  const expected = expectedUntil(520, { unknownAt: timeOf(520) });
  const { view } = await findSettlement(token, expected, createAllowance(CALLS_A_LOOK));
  return { view, calls: counted.calls };
}

test("A payment without a row is refused after three readings without a settlement, before any is final", async () => {
  expect(await lookOfUnknown(null, [0])).toEqual({ view: { nonce: "dead", reason: "expired" }, calls: 3 });
  expect((await lookOfUnknown(null, [0, 180, 0])).view).toEqual({ nonce: "dead", reason: "expired" });
});

test.each<readonly [string, readonly NodeKind[]]>([
  ["from a lagging node", [180, 0, 0]],
  ["from two lagging nodes", [180, 180, 0]],
  ["from a node with a stale state while the others lag", ["stale", 180, 180]],
  ["from lagging nodes only", [180]],
])("A payment without a row is not refused after a reading %s", async (_, nodes) => {
  const paid = { block: 500, isCanceled: false };
  expect((await lookOfUnknown(paid, nodes)).view).toEqual({ nonce: "unused" });
  expect((await lookOfUnknown(paid, [0])).view).toMatchObject({ nonce: "paid" });
});

/** A settlement that a reorganization moved to another block. */
const MOVED: readonly Branch[] = [
  { since: 0, fork: 0, outcome: { block: 500, isCanceled: false } },
  { since: 901, fork: 460, outcome: { block: 510, isCanceled: false } },
];

test("Two lagging nodes on an abandoned branch do not make its settlement final", async () => {
  const scene: Scene = { head: 900, nodes: [0], areOnBranch: false };
  const one = process(MOVED, scene, 520);
  expect(await one.look()).toMatchObject({ nonce: "paid", final: false, settlement: { block: 500 } });
  // Readings of the final block, then of the hashes.
  Object.assign(scene, { head: 1_000, nodes: [0, 0, 100, 100, 0] });
  expect(await one.finalBlock()).toBeNull();
  scene.nodes = [0, 100, 100, 0];
  expect(await one.look()).not.toMatchObject({ final: true });
  scene.nodes = [0];
  expect(await one.look()).toMatchObject({ nonce: "paid", settlement: { block: 510 } });
  expect(await one.finalBlock()).toBe(510);
});
