import type { Address, Hex } from "viem";
import type { Activity } from "../../api/platform/index/activity.ts";
import type { TestChain } from "../support/chain/chain.ts";

const DAY_MS = 86_400_000;
const NOBODY = "0".repeat(40);
const USED = "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5";
const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/** A transfer of USDC as the chain's raw logs tell it; addresses without 0x. */
export interface Fact {
  /** Absent for a transfer. A hold is authorised, and moves nothing to the merchant yet; a release does. */
  readonly kind?: "hold" | "release";
  /** The payment's, of those two. */
  readonly id?: Hex;
  /** Its order in the chain. */
  readonly place: number;
  readonly from: string;
  readonly to: string;
  readonly value: bigint;
  readonly authorised: boolean;
  readonly timestampMs: number;
  readonly transaction: Hex;
}

export const placeOf = ({ blockNumber, logIndex }: { blockNumber: bigint; logIndex: number }): number =>
  Number(blockNumber) * 10_000 + logIndex;
export const blockOf = (place: number): number => Math.floor(place / 10_000);

/** The service's own addresses, each with the block from which it counts as one. */
export type Own = Readonly<Record<Address, number>>;

/** When each block was made, in milliseconds: every recount asks for the same ones. */
const times = new Map<Hex, number>();

/** When a log's block was made, in milliseconds. */
export async function timeOf({ client }: TestChain, { blockHash }: { readonly blockHash: Hex }): Promise<number> {
  const known = times.get(blockHash);
  if (known !== undefined) return known;
  const made = Number((await client.getBlock({ blockHash })).timestamp) * 1000;
  times.set(blockHash, made);
  return made;
}

/** Every transfer of more than nothing between two others, read from the node and decoded by hand. */
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
    const authorised =
      before?.topics[0] === USED &&
      before.transactionHash === log.transactionHash &&
      before.logIndex === log.logIndex - 1 &&
      before.topics[1] === from;
    const timestampMs = madeAt.get(log.blockHash) ?? 0;
    const [value, transaction] = [BigInt(log.data), log.transactionHash];
    return [{ from: parties[0], to: parties[1], value, authorised, timestampMs, transaction, place: placeOf(log) }];
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
      (at.scope === "full" || fact.authorised),
  );
  const last = Math.max(...mine.map(({ timestampMs }) => timestampMs));
  return {
    settledPayments: mine.filter((fact) => fact.from === me && fact.authorised).length,
    distinctCounterparties: new Set(
      mine.filter(({ value }) => value >= 1_000n).map((fact) => (fact.from === me ? fact.to : fact.from)),
    ).size,
    lastSeenDays: mine.length === 0 ? null : Math.max(0, Math.floor((at.now.getTime() - last) / DAY_MS)),
  };
}
