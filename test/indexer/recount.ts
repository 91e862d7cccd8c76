import type { Address, Hex } from "viem";
import type { Activity } from "../../api/platform/index/activity.ts";
import type { TestChain } from "../support/chain/chain.ts";

const DAY_MS = 86_400_000;
const NOBODY = "0".repeat(40);
const USED = "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5";
const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/** A transfer of USDC from the chain's raw logs, with addresses without 0x. */
export interface Fact {
  /** Absent for a transfer. A hold is authorized and moves no money to the merchant until its release. */
  readonly kind?: "hold" | "release";
  /** The payment's id, for a hold or a release. */
  readonly id?: Hex;
  /** Its order in the chain. */
  readonly place: number;
  readonly from: string;
  readonly to: string;
  readonly value: bigint;
  readonly authorized: boolean;
  readonly timestampMs: number;
  readonly transaction: Hex;
}

export const placeOf = ({ blockNumber, logIndex }: { blockNumber: bigint; logIndex: number }): number =>
  Number(blockNumber) * 10_000 + logIndex;
export const blockOf = (place: number): number => Math.floor(place / 10_000);

/** The service's addresses, each with the first block in which it counts as one. */
export type Own = Readonly<Record<Address, number>>;

/** The time of each block in milliseconds, cached because every recount reads the same blocks. */
const times = new Map<Hex, number>();

/** The time of a log's block, in milliseconds. */
export async function timeOf({ client }: TestChain, { blockHash }: { readonly blockHash: Hex }): Promise<number> {
  const known = times.get(blockHash);
  if (known !== undefined) return known;
  const made = Number((await client.getBlock({ blockHash })).timestamp) * 1000;
  times.set(blockHash, made);
  return made;
}

/** Every transfer of more than zero between two others, read from the node and decoded by hand. */
export async function readFacts(chain: TestChain, own: readonly Address[], since: Own = {}): Promise<readonly Fact[]> {
  const logs = await chain.client.getLogs({ address: chain.network.usdc.address, fromBlock: 0n, toBlock: "latest" });
  const madeAt = new Map<Hex, number>();
  for (const log of logs) madeAt.set(log.blockHash, await timeOf(chain, log));
  const always = own.map((address) => [address, 0] as const);
  const ours = new Map(
    [...always, ...Object.entries(since)].map(([address, block]) => [address.slice(2).toLowerCase(), block]),
  );
  const isOurs = (party: string, block: bigint) => block >= (ours.get(party) ?? Number.POSITIVE_INFINITY);
  return logs.flatMap((log, index) => {
    const [kind, from, to] = log.topics as Hex[];
    if (kind !== TRANSFER || from === undefined || to === undefined || BigInt(log.data) === 0n) return [];
    const parties = [from.slice(26), to.slice(26)] as const;
    if (parties[0] === parties[1] || parties.some((party) => party === NOBODY || isOurs(party, log.blockNumber)))
      return [];
    const before = logs[index - 1];
    const authorized =
      before?.topics[0] === USED &&
      before.transactionHash === log.transactionHash &&
      before.logIndex === log.logIndex - 1 &&
      before.topics[1] === from;
    const timestampMs = madeAt.get(log.blockHash) ?? 0;
    const [value, transaction] = [BigInt(log.data), log.transactionHash];
    return [{ from: parties[0], to: parties[1], value, authorized, timestampMs, transaction, place: placeOf(log) }];
  });
}

/** The activity by definition, from all transfers. */
export function recount(
  facts: readonly Fact[],
  wallet: Address,
  at: { now: Date; scope: Activity["scope"] },
): Pick<Activity, "settledPayments" | "distinctCounterparties" | "lastSeenDays"> {
  const me = wallet.slice(2).toLowerCase();
  const midnight = new Date(at.now).setUTCHours(0, 0, 0, 0);
  const [from, to] = [midnight - 89 * DAY_MS, midnight + DAY_MS];
  const mine = facts.filter(
    (fact) =>
      (fact.from === me || fact.to === me) &&
      fact.timestampMs >= from &&
      fact.timestampMs < to &&
      (at.scope === "full" || fact.authorized),
  );
  const last = Math.max(...mine.map(({ timestampMs }) => timestampMs));
  return {
    settledPayments: mine.filter((fact) => fact.from === me && fact.authorized).length,
    distinctCounterparties: new Set(
      mine.filter(({ value }) => value >= 1_000n).map((fact) => (fact.from === me ? fact.to : fact.from)),
    ).size,
    lastSeenDays: mine.length === 0 ? null : Math.max(0, Math.floor((at.now.getTime() - last) / DAY_MS)),
  };
}

const FLOOR = 50_000n;
export type Scope = "full" | "selective";

export const sum = (facts: readonly Fact[]) => facts.reduce((total, { value }) => total + value, 0n);

/** A hold moves no money to the merchant. Its release does. */
export const moves = ({ kind }: Fact) => kind !== "hold";

/** `funder` is the payer's largest funder at that moment. */
export type Reached = Fact & { readonly funder: Address | null };

interface Counted {
  readonly facts: readonly Fact[];
  readonly reached: readonly Reached[];
}
const counted = new WeakMap<readonly Fact[], Map<Scope, Counted>>();

/** The transfers that count in a scope. Computed once, because every wallet's reading needs them. */
export function countedIn(all: readonly Fact[], scope: Scope): Counted {
  const known = counted.get(all) ?? new Map<Scope, Counted>();
  counted.set(all, known);
  const before = known.get(scope);
  if (before !== undefined) return before;
  const facts = all.filter((fact) => scope === "full" || fact.authorized || fact.kind === "release");
  const now = { facts, reached: reachedFloors(facts, scope) };
  known.set(scope, now);
  return now;
}

/** For each payer and payee, the payment with which their total reached the floor. */
const reachedFloors = (facts: readonly Fact[], scope: Scope): readonly Reached[] =>
  facts.flatMap((fact, index) => {
    const before = facts.slice(0, index);
    const earlier = before.filter((one) => one.authorized && one.from === fact.from && one.to === fact.to);
    if (!fact.authorized || sum(earlier) >= FLOOR || sum(earlier) + fact.value < FLOOR) return [];
    return [{ ...fact, funder: largestFunder(fact.from, before, scope) }];
  });

/** The sender with the largest total. In a tie, the one whose last transfer is earliest reached it first. */
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
