import type { Address } from "viem";
import type { Fact } from "./recount.ts";

const FLOOR = 50_000n;
export type Scope = "full" | "selective";

export const sum = (facts: readonly Fact[]) => facts.reduce((total, { value }) => total + value, 0n);

/** A hold moves no money to the merchant: that does its release. */
export const moves = ({ kind }: Fact) => kind !== "hold";

/** With `funder`, the payer's largest funder at that moment. */
export type Reached = Fact & { readonly funder: Address | null };

interface Counted {
  readonly facts: readonly Fact[];
  readonly reached: readonly Reached[];
}
const counted = new WeakMap<readonly Fact[], Map<Scope, Counted>>();

/** What a scope has of all transfers. Every wallet's reading asks for it, so it is worked out once. */
export function countedIn(all: readonly Fact[], scope: Scope): Counted {
  const known = counted.get(all) ?? new Map<Scope, Counted>();
  counted.set(all, known);
  const before = known.get(scope);
  if (before !== undefined) return before;
  const facts = all.filter((fact) => scope === "full" || fact.authorised || fact.kind === "release");
  const now = { facts, reached: reachedFloors(facts, scope) };
  known.set(scope, now);
  return now;
}

/** The payment of each payer and payee with which the sum of theirs reached the floor. */
const reachedFloors = (facts: readonly Fact[], scope: Scope): readonly Reached[] =>
  facts.flatMap((fact, index) => {
    const before = facts.slice(0, index);
    const earlier = before.filter((one) => one.authorised && one.from === fact.from && one.to === fact.to);
    if (!fact.authorised || sum(earlier) >= FLOOR || sum(earlier) + fact.value < FLOOR) return [];
    return [{ ...fact, funder: largestFunder(fact.from, before, scope) }];
  });

/** Of those who sent the most, the one whose last transfer is the earliest was the first to reach that sum. */
export function largestFunder(wallet: string, facts: readonly Fact[], scope: Scope): Address | null {
  if (scope !== "full") return null;
  const inflows = [
    ...Map.groupBy(
      facts.filter((fact) => fact.to === wallet && moves(fact)),
      ({ from }) => from,
    ),
  ];
  const bySum = Map.groupBy(inflows, ([, mine]) => sum(mine));
  const [, largest = []] = [...bySum].toSorted(([a], [b]) => (a > b ? -1 : 1))[0] ?? [];
  const [first] = largest.toSorted(
    ([, a], [, b]) => facts.lastIndexOf(a.at(-1) as Fact) - facts.lastIndexOf(b.at(-1) as Fact),
  );
  return first === undefined ? null : `0x${first[0]}`;
}
