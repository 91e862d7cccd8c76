import { MAIN_NETWORK, NETWORKS } from "../api/platform/networks.ts";
import type { Address, Hex } from "../api/platform/wallet.ts";
import { INDEPENDENCE, MAX_PAYEES, OUTCOME_FLOOR, QUALIFYING_PAYMENT } from "../packages/verifier/src/score/bands.ts";
import { WINDOW_DAYS } from "../packages/verifier/src/score/facts.ts";

const BASE = NETWORKS[MAIN_NETWORK];
export const { chainId: CHAIN_ID, blockSeconds: BLOCK_SECONDS, rpcVariable: RPC_VARIABLE } = BASE;
/** In lower case. */
export const USDC = BASE.usdc.address;

export { WINDOW_DAYS };
/** The days that `wallet_day` keeps before the last one: one more than a window ending the day before needs. */
export const KEPT_DAYS = WINDOW_DAYS + 1;
export const DAY_SECONDS = 86_400;
export const WINDOW_BLOCKS = (WINDOW_DAYS * DAY_SECONDS) / BLOCK_SECONDS;

/** A setting, a file, or a node is wrong, and a restart will not fix it. */
export class LastingError extends Error {
  override readonly name = "LastingError";
}

// Amounts and counts of the score. Increment ROWS_VERSION when you change one.
/** The smallest authorized payment that qualifies, and the smallest transfer that makes a counterparty. */
export const QUALIFYING_ATOMIC = BigInt(QUALIFYING_PAYMENT);
/** The total of a payer's authorized payments to a payee from which the score considers that payee. */
export const FLOOR_ATOMIC = BigInt(INDEPENDENCE.floor);
/** The smallest escrowed payment that counts for its merchant. */
export const OUTCOME_FLOOR_ATOMIC = BigInt(OUTCOME_FLOOR);
/** The number of payees that the index lists per payer, namely the last ones to reach the floor. */
export const PAYEE_SLOTS = MAX_PAYEES;
/** The number of payers that it lists per payee in scope `selective`, chosen the same way. */
export const PAYER_SLOTS = 16;

/** All transfers, or authorized payments only (docs/index.md). */
export const SCOPES = ["selective", "full"] as const;
export type Scope = (typeof SCOPES)[number];
/** The UTC calendar day, counted from 1970-01-01. */
export const dayOf = (timestamp: bigint): number => Number(timestamp / BigInt(DAY_SECONDS));

export const lower = (address: Address) => address.toLowerCase() as Address;

/** One key for both directions between two wallets. */
export const orderedPair = (a: Address, b: Address): { readonly low: Address; readonly high: Address } =>
  a < b ? { low: a, high: b } : { low: b, high: a };

/** A wallet's counterparties on one day. */
export interface TouchedDay {
  readonly day: number;
  /** The number of counterparties touched on that day. */
  readonly touched: number;
  /**
   * For each age n, the number of them last touched at most n days before, in base64: a byte with the first age that
   * occurs, then a big-endian 24-bit number per age up to the last. It is text because Ponder deep-clones rows with other
   * types, and cumulative so that a reader needs only one number.
   */
  readonly ages: string | null;
}

const COUNT_BYTES = 3;
const firstOf = (ages: Buffer): number => ages.readUInt8(0);
const lastOf = (ages: Buffer): number => firstOf(ages) + (ages.length - 1) / COUNT_BYTES - 1;

/** Returns the number for an age: 0 before the first age, and the last number after the last age. */
function countOf(ages: Buffer | null, age: number): number {
  if (ages === null || age < firstOf(ages)) return 0;
  return ages.readUIntBE(1 + (Math.min(age, lastOf(ages)) - firstOf(ages)) * COUNT_BYTES, COUNT_BYTES);
}

/**
 * Adds a counterparty to `ages` that was last touched `age` days earlier, or never (null). An age of at least the window's
 * width is the same as never.
 */
export function withAge(ages: string | null, age: number | null): string | null {
  if (age === null || age >= WINDOW_DAYS) return ages;
  const before = ages === null ? null : Buffer.from(ages, "base64");
  const [first, last] = before === null ? [age, age] : [Math.min(firstOf(before), age), Math.max(lastOf(before), age)];
  const after = Buffer.alloc(1 + (last - first + 1) * COUNT_BYTES, first);
  for (let k = first; k <= last; k++)
    after.writeUIntBE(countOf(before, k) + (k >= age ? 1 : 0), 1 + (k - first) * COUNT_BYTES, COUNT_BYTES);
  return after.toString("base64");
}

export interface Movement {
  readonly from: Address;
  readonly to: Address;
  readonly value: bigint;
}

export interface Seen extends Movement {
  readonly authorized: boolean;
  readonly block: bigint;
  readonly timestamp: bigint;
  readonly transaction: Hex;
}

export const NOBODY: Address = "0x0000000000000000000000000000000000000000";

/** Whether money moved between two third parties: not minted or burned, not to itself, and not from or to the service. */
export const isBetweenOthers = ({ from, to, value }: Movement, own: ReadonlySet<Address>): boolean =>
  value > 0n && from !== to && ![from, to].some((address) => address === NOBODY || own.has(address));

export const reachesFloor = (sumBefore: bigint, value: bigint): boolean =>
  sumBefore < FLOOR_ATOMIC && sumBefore + value >= FLOOR_ATOMIC;

/** transferWithAuthorization and receiveWithAuthorization, with (v, r, s) and with bytes. Their first six words are the same. */
const AUTHORIZED_CALLS = new Set(["0xe3ee160e", "0xcf092995", "0xef55bec6", "0x88b7ab63"]);

interface AuthorizedCall {
  readonly transaction: { readonly to: string | null; readonly input: string };
  readonly usdc: string;
  readonly authorizer: string;
  readonly nonce: string;
}

/** Returns the payee and amount if the transaction itself is that call to USDC, else null, because inner calldata can lie. */
export function directTerms({ transaction, usdc, authorizer, nonce }: AuthorizedCall): Omit<Movement, "from"> | null {
  if (transaction.to?.toLowerCase() !== usdc.toLowerCase()) return null;
  if (!AUTHORIZED_CALLS.has(transaction.input.slice(0, 10).toLowerCase())) return null;
  const word = (index: number) => transaction.input.slice(10 + 64 * index, 74 + 64 * index).toLowerCase();
  if (word(0).slice(24) !== authorizer.slice(2).toLowerCase() || word(5) !== nonce.slice(2).toLowerCase()) return null;
  return { to: `0x${word(1).slice(24)}`, value: BigInt(`0x${word(2)}`) };
}
