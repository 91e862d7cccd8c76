import { toEventSelector } from "viem";

type Address = `0x${string}`;

/** Width of the window a wallet's rows cover, in UTC calendar days. */
export const WINDOW_DAYS = 90;
/**
 * How many days before the last one `wallet_day` keeps: a day more than a window that ends a day before the last.
 */
export const KEPT_DAYS = WINDOW_DAYS + 1;
const DAY_SECONDS = 86_400n;
// As in the score (packages/verifier/src/score/bands.ts): other values need another index.
/** The smallest authorized payment that qualifies, and the smallest transfer that makes a counterparty: 0.001 USD. */
export const QUALIFYING_ATOMIC = 1_000n;
/** What a payer's authorized payments to a payee must total before the score considers that payee: 0.05 USD. */
export const FLOOR_ATOMIC = 50_000n;
/** As in the score: from which amount on an escrowed payment says something about its merchant: 0.05 USD. */
export const OUTCOME_FLOOR_ATOMIC = 50_000n;
/** How many payees the index lists by name for each payer: those that reached the floor most recently. */
export const PAYEE_SLOTS = 64;
/** How many payers it lists by name for each payee in scope `selective`: those that reached the floor most recently. */
export const PAYER_SLOTS = 16;

/**
 * What an index has: authorized payments and what the score needs to look up the rest, or all transfers (docs/index.md).
 */
export const SCOPES = ["selective", "full"] as const;
export type Scope = (typeof SCOPES)[number];
/** The UTC calendar day of a block's timestamp, counted from 1970-01-01. */
export const dayOf = (timestamp: bigint): number => Number(timestamp / DAY_SECONDS);

/** One key for both directions between two wallets. */
export const orderedPair = (a: Address, b: Address): { readonly low: Address; readonly high: Address } =>
  a < b ? { low: a, high: b } : { low: b, high: a };

const COUNT_BYTES = 3;

/** The first and the last age that a day's histogram (`TouchedDay.ages`) has a number for. */
const firstOf = (ages: Buffer): number => ages.readUInt8(0);
const lastOf = (ages: Buffer): number => firstOf(ages) + (ages.length - 1) / COUNT_BYTES - 1;

/** The histogram's number for an age: 0 before its first, and after its last the last one. */
function countOf(ages: Buffer | null, age: number): number {
  if (ages === null || age < firstOf(ages)) return 0;
  return ages.readUIntBE(1 + (Math.min(age, lastOf(ages)) - firstOf(ages)) * COUNT_BYTES, COUNT_BYTES);
}

const unpacked = (ages: string | null): Buffer | null => (ages === null ? null : Buffer.from(ages, "base64"));

/**
 * A day's histogram (`TouchedDay.ages`) with one more counterparty, last touched `age` days earlier (null: never). For
 * every window, an age of the window's width or more is the same as never, so it is not stored.
 */
export function withAge(ages: string | null, age: number | null): string | null {
  if (age === null || age >= WINDOW_DAYS) return ages;
  const before = unpacked(ages);
  const [first, last] = before === null ? [age, age] : [Math.min(firstOf(before), age), Math.max(lastOf(before), age)];
  const after = Buffer.alloc(1 + (last - first + 1) * COUNT_BYTES, first);
  for (let k = first; k <= last; k++)
    after.writeUIntBE(countOf(before, k) + (k >= age ? 1 : 0), 1 + (k - first) * COUNT_BYTES, COUNT_BYTES);
  return after.toString("base64");
}

/** What one wallet's day records about its counterparties. */
export interface TouchedDay {
  readonly day: number;
  /** Counterparties touched on that day. */
  readonly touched: number;
  /**
   * How many of them were last touched at most so many days before: a byte with the first age that occurs, then for each
   * age from there to the last a big-endian 24-bit number, in base64. Text, because Ponder deep-clones rows with anything
   * else; cumulative, so that a reader needs only one of the numbers.
   */
  readonly ages: string | null;
}

export interface Movement {
  readonly from: Address;
  readonly to: Address;
  readonly value: bigint;
}

export const NOBODY: Address = "0x0000000000000000000000000000000000000000";

/**
 * Whether money moved between two third parties: not minted or burnt, not to oneself, not from or to an address of the
 * service.
 */
export const isBetweenOthers = ({ from, to, value }: Movement, own: ReadonlySet<Address>): boolean =>
  value > 0n && from !== to && ![from, to].some((address) => address === NOBODY || own.has(address));

/** Whether this payment takes the sum to the floor. */
export const reachesFloor = (sumBefore: bigint, value: bigint): boolean =>
  sumBefore < FLOOR_ATOMIC && sumBefore + value >= FLOOR_ATOMIC;

export const TRANSFER_TOPIC = toEventSelector("Transfer(address,address,uint256)");

/**
 * transferWithAuthorization and receiveWithAuthorization, with (v, r, s) and with bytes: all start with the same six
 * words.
 */
const AUTHORISED_CALLS = new Set(["0xe3ee160e", "0xcf092995", "0xef55bec6", "0x88b7ab63"]);

interface AuthorisedCall {
  readonly transaction: { readonly to: string | null; readonly input: string };
  readonly usdc: string;
  readonly authorizer: string;
  readonly nonce: string;
}

/**
 * The payee and amount of an authorization if the transaction itself is that call to USDC; null otherwise, because
 * inner calldata can lie.
 */
export function directTerms({ transaction, usdc, authorizer, nonce }: AuthorisedCall): Omit<Movement, "from"> | null {
  if (transaction.to?.toLowerCase() !== usdc.toLowerCase()) return null;
  if (!AUTHORISED_CALLS.has(transaction.input.slice(0, 10).toLowerCase())) return null;
  const word = (index: number) => transaction.input.slice(10 + 64 * index, 74 + 64 * index).toLowerCase();
  if (word(0).slice(24) !== authorizer.slice(2).toLowerCase() || word(5) !== nonce.slice(2).toLowerCase()) return null;
  return { to: `0x${word(1).slice(24)}`, value: BigInt(`0x${word(2)}`) };
}
