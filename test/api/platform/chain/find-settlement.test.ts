import fc from "fast-check";
import { expect, test } from "vitest";
import { findSettlement } from "../../../../api/platform/chain/authorizations.ts";
import { standing } from "../../../../api/platform/chain/chain.ts";
import { createAllowance } from "../../../../api/platform/chain/pace.ts";
import type { Settlement, View } from "../../../../api/platform/chain/view.ts";
import {
  type Branch,
  expectedUntil,
  type Fate,
  FINAL_AFTER,
  type NodeKind,
  type Scene,
  threeNodes,
  timeOf,
  tokenOf,
  type World,
  worldWith,
} from "../../../support/settlement-status/branching-chain.ts";

// What the gate concludes for good of a payment, read from nodes that lag on branches that the chain has left.

const CALLS_A_LOOK = 4;
/** By then, what is final is read again. */
const LOOK_AGAIN_MS = 2_100;

/** A payment is used before its window closes, or never. */
const inTime = ({ end }: World, fate: Fate | null): Fate | null => (fate !== null && fate.block < end ? fate : null);

interface Concluded {
  readonly view: View;
  readonly head: number;
  /** The last look after the last reorganization. */
  readonly isLast: boolean;
}

function process(branches: readonly Branch[], scene: Scene, end: number) {
  const { token, counted } = tokenOf(branches, scene);
  let settlement: Settlement | null = null;
  return {
    /** Null while the chain cannot be read. */
    async look(): Promise<View | null> {
      Object.assign(counted, { calls: 0, ms: counted.ms + LOOK_AGAIN_MS });
      const found = await findSettlement(token, expectedUntil(end), createAllowance(CALLS_A_LOOK)).catch(() => null);
      expect(counted.calls).toBeLessThanOrEqual(CALLS_A_LOOK);
      if (found?.view.nonce === "paid") ({ settlement } = found.view);
      return found?.view ?? null;
    },
    /** The block that it was last seen in, if that is final by now. */
    async finalBlock(): Promise<number | null> {
      if (settlement === null) return null;
      const { block } = settlement;
      return (await standing(token.client, token.finality.confirmed, settlement)) === "final" ? block : null;
    },
  };
}

/** Looks with a process that goes on and one that has just been started. */
async function play(given: World, each: (concluded: Concluded, expected: Fate | null) => void): Promise<void> {
  const branches = given.branches.map((branch) => ({ ...branch, fate: inTime(given, branch.fate) }));
  const expected = branches.at(-1)?.fate ?? null;
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

const asPaid = (fate: Fate | null) => ({ block: fate?.block, isPaid: fate?.isCanceled === false });

function expectTrue(view: View, expected: Fate | null): void {
  if (view.nonce === "dead")
    expect(view.reason).toBe(expected === null ? "expired" : expected.isCanceled && "nonce_consumed");
  if (view.nonce === "paid" && view.final)
    expect({ block: view.settlement.block, isPaid: true }).toEqual(asPaid(expected));
}

test("no payment is refused, burnt, kept or reversed for good that the chain shows otherwise, while one of three nodes keeps up", async () => {
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

test("while all nodes keep up, three looks are enough to say what is final", async () => {
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

/** The payment is in block 500; two nodes still have a chain without it, on which its window has closed. */
const REPLACED: readonly Branch[] = [
  { since: 0, fork: 0, fate: null },
  { since: 901, fork: 460, fate: { block: 500, isCanceled: false } },
];
/** The same, but there the payer has canceled it. */
const CANCELED: readonly Branch[] = [
  { since: 0, fork: 0, fate: { block: 500, isCanceled: true } },
  ...REPLACED.slice(1),
];

test.each([
  ["does not show it", REPLACED],
  ["shows it canceled", CANCELED],
])("two late nodes on a branch that %s refuse no payment", async (_, branches) => {
  const scene: Scene = { head: 1_000, nodes: [0], areOnBranch: false };
  const one = process(branches, scene, 520);
  // What is final is known: the next look asks nothing else.
  for (let look = 0; look < 2; look++) expect(await one.look()).toMatchObject({ nonce: "paid" });
  scene.nodes = [100, 100, 0];
  expect((await one.look())?.nonce).not.toBe("dead");
  scene.nodes = [0];
  expect(await one.look()).toMatchObject({ nonce: "paid", final: true, settlement: { block: 500 } });
});

test("nor do they while another one is asked what is final in between", async () => {
  const scene: Scene = { head: 968, nodes: [0], areOnBranch: false };
  const one = process(REPLACED, scene, 520);
  for (const head of [968, 970]) {
    scene.head = head;
    expect(await one.look()).toMatchObject({ nonce: "paid" });
    // Reads what is final.
    await one.finalBlock();
  }
  scene.nodes = [100, 0, 100, 100];
  expect(await one.look()).toEqual({ nonce: "unused" });
});

test("one wrong reading expires nothing where the others are behind the final block", async () => {
  const scene: Scene = { head: 1_000, nodes: [0], areOnBranch: false };
  const one = process([{ since: 0, fork: 0, fate: { block: 500, isCanceled: false } }], scene, 520);
  for (let look = 0; look < 2; look++) expect(await one.look()).toMatchObject({ nonce: "paid" });
  scene.nodes = ["stale", 900, 900];
  expect(await one.look()).toEqual({ nonce: "unused" });
});

/** A payment in block 500, or none, that no row knows any more; its window has closed at the time of block 520. */
async function lookOfUnknown(fate: Fate | null, nodes: readonly NodeKind[], head = 560) {
  const scene: Scene = { head, nodes, areOnBranch: false };
  const { token, counted } = tokenOf([{ since: 0, fork: 0, fate }], scene);
  const expected = expectedUntil(520, { unknownAt: timeOf(520) });
  const { view } = await findSettlement(token, expected, createAllowance(CALLS_A_LOOK));
  return { view, calls: counted.calls };
}

test("a payment that no row knows is refused once three readings show that it has not paid, though nothing is final yet", async () => {
  expect(await lookOfUnknown(null, [0])).toEqual({ view: { nonce: "dead", reason: "expired" }, calls: 3 });
  expect((await lookOfUnknown(null, [0, 180, 0])).view).toEqual({ nonce: "dead", reason: "expired" });
});

test.each<readonly [string, readonly NodeKind[]]>([
  ["of a node that is late", [180, 0, 0]],
  ["of two nodes that are late", [180, 180, 0]],
  ["of a node whose state stands still, while the others are late", ["stale", 180, 180]],
  ["of nodes that are late, however many", [180]],
])("it is not refused on the word %s", async (_, nodes) => {
  const paid = { block: 500, isCanceled: false };
  expect((await lookOfUnknown(paid, nodes)).view).toEqual({ nonce: "unused" });
  expect((await lookOfUnknown(paid, [0])).view).toMatchObject({ nonce: "paid" });
});

/** A settlement that the chain has left for one in another block. */
const MOVED: readonly Branch[] = [
  { since: 0, fork: 0, fate: { block: 500, isCanceled: false } },
  { since: 901, fork: 460, fate: { block: 510, isCanceled: false } },
];

test("two late nodes on a branch that the chain has left keep no settlement for good", async () => {
  const scene: Scene = { head: 900, nodes: [0], areOnBranch: false };
  const one = process(MOVED, scene, 520);
  expect(await one.look()).toMatchObject({ nonce: "paid", final: false, settlement: { block: 500 } });
  // What is final; then the hashes.
  Object.assign(scene, { head: 1_000, nodes: [0, 0, 100, 100, 0] });
  expect(await one.finalBlock()).toBeNull();
  scene.nodes = [0, 100, 100, 0];
  expect(await one.look()).not.toMatchObject({ final: true });
  scene.nodes = [0];
  expect(await one.look()).toMatchObject({ nonce: "paid", settlement: { block: 510 } });
  expect(await one.finalBlock()).toBe(510);
});
