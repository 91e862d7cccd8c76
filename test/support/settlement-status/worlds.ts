import fc from "fast-check";
import { type Branch, type Fate, FINAL_AFTER, type NodeKind } from "./branching-chain.ts";

// Chains that reorganize above their final block, and when which nodes are asked.

export interface Moment {
  readonly grown: number;
  readonly nodes: readonly NodeKind[];
}

export interface World {
  readonly branches: readonly Branch[];
  /** The block at whose time the authorization ends. */
  readonly end: number;
  readonly moments: readonly Moment[];
}

const fate: fc.Arbitrary<Fate | null> = fc.option(
  fc.record({ block: fc.integer({ min: 1, max: 700 }), isCanceled: fc.boolean() }),
  { nil: null, freq: 6 },
);
const reorganization = fc.record({
  since: fc.integer({ min: 20, max: 1_100 }),
  depth: fc.integer({ min: 1, max: FINAL_AFTER - 1 }),
  fate,
});
export const MOST_BEHIND = 900;
const lag: fc.Arbitrary<NodeKind> = fc.constantFrom(0, 1, 30, 180, 299, 460, MOST_BEHIND);
/** Two nodes of any kind and one that keeps up, in any order. */
export const threeNodes: fc.Arbitrary<readonly NodeKind[]> = (() => {
  const other = fc.oneof(
    { arbitrary: lag, weight: 5 },
    { arbitrary: fc.constantFrom<NodeKind>("pruned", "stale", "left"), weight: 2 },
  );
  return fc.tuple(other, other, fc.constant(0)).chain((three) => fc.shuffledSubarray(three, { minLength: 3 }));
})();
const grown = fc.oneof(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 0, max: 450 }));

export const worldWith = (nodes: fc.Arbitrary<readonly NodeKind[]>): fc.Arbitrary<World> =>
  fc
    .record({
      first: fate,
      more: fc.array(reorganization, { maxLength: 3 }),
      end: fc.integer({ min: 1, max: 700 }),
      moments: fc.array(fc.record({ grown, nodes }), { minLength: 2, maxLength: 8 }),
    })
    .map(({ first, more, ...given }) => ({ ...given, branches: branchesOf(first, more) }));

/** Only what is not final yet can be replaced. */
function branchesOf(
  first: Fate | null,
  more: readonly { readonly since: number; readonly depth: number; readonly fate: Fate | null }[],
): readonly Branch[] {
  const branches: Branch[] = [{ since: 0, fork: 0, fate: first }];
  for (const { since, depth, fate: wanted } of more.toSorted((one, two) => one.since - two.since)) {
    const before = branches.at(-1)?.fate ?? null;
    const fork = Math.max(0, since - depth);
    const isKept = before !== null && before.block <= fork;
    const isPossible = wanted === null || wanted.block > fork;
    branches.push({ since, fork, fate: isKept ? before : isPossible ? wanted : null });
  }
  return branches;
}
