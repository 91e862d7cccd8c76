import type { Product } from "../vocabulary.ts";

/** An address of 20 bytes, in lowercase. */
export type Account = `0x${string}`;
/** The hash of a transaction, 32 bytes, in lowercase. */
export type TransactionHash = `0x${string}`;
/** An amount in atomic units of USDC (10^-6), as a decimal string without leading zeros. */
export type Atomic = string;
/** A UTC time as `Date.prototype.toISOString` writes it: `2026-11-25T09:30:00.000Z`. On-chain times are block times. */
export type Time = string;
/** A UTC calendar day: `2026-11-25`. */
export type Day = string;

/**
 * Everything that a score is computed from, as JSON. Facts always include their chain part: while the index is
 * unavailable, a wallet has no score rather than a lower one.
 */
export interface ScoreFacts {
  readonly wallet: Account;
  /**
   * The time at which certificates and payments are judged: when the facts were read, or the time of block
   * `as_of_block` if that is later. So no time on the chain is after it.
   */
  readonly as_of: Time;
  /** The last block that the index had read. All of `chain` is the index's state after that block. */
  readonly as_of_block: number;
  /**
   * At least the newest certificate per product and result that is not reversed. Older and reversed ones only change
   * the hash of the facts. In any order.
   */
  readonly certificates: readonly CertificateFact[];
  readonly chain: ChainFacts;
  /**
   * The newest PASS and the newest FAIL among the exams that count of the sellers paid at this wallet. Per request, the
   * newest exam counts while it is fresh, unless it was withdrawn or reversed. A FAIL is listed only if the wallet
   * itself signed for the exam. In any order.
   */
  readonly seller_exams: readonly SellerExam[];
}

export interface CertificateFact {
  readonly id: string;
  /** Its public page. */
  readonly url: string;
  readonly product: Product;
  readonly result: "pass" | "fail";
  readonly issued_at: Time;
  /** It is fresh until this instant, exclusive. */
  readonly valid_until: Time;
  /** When a settlement that it depends on was found to be permanently gone from the chain; null otherwise. */
  readonly reversed_at: Time | null;
}

/**
 * The index's facts about the wallet. Transfers to and from addresses of the service, to oneself, and to and from the
 * zero address are excluded everywhere. An authorized payment is a USDC transfer signed by its payer (EIP-3009). A hold
 * in an escrow is such a payment, to the merchant.
 */
export interface ChainFacts {
  /** The CAIP-2 identifier of the chain of all transactions, such as `eip155:8453`. */
  readonly network: string;
  /** `selective`: the index has authorized payments only. Funders are looked up in the logs of USDC (`Lookup`). */
  readonly scope: "full" | "selective";
  /** The first block that the index has read. Sums without a named window start here. */
  readonly first_block: number;
  /** The 90 UTC calendar days ending with the day of `as_of`; both ends are inclusive. */
  readonly window: { readonly from: Day; readonly to: Day };
  readonly payments: PaymentFacts;
  /**
   * The account that has sent the wallet the most USDC in total (ties go to the first to reach it), or null without
   * one.
   */
  readonly largest_funder: Account | null;
  /**
   * The payees (at most 64) whose total of authorized payments from the wallet reached 0.05 USD most recently. In any
   * order.
   */
  readonly payees: readonly PayeeFact[];
  readonly escrow: EscrowFacts;
  /** Null except in scope `selective`, and if the wallet has no payee whose payers matter. */
  readonly lookup: Lookup | null;
}

/**
 * The range of a look-up: all transfers of USDC to the wallet, and to payers of its payees, from `first_block` to
 * `block`. Newer ones count as unknown. `largest_funder` and `returned` are as of that block.
 */
export interface Lookup {
  /** A final block, and its hash. */
  readonly block: number;
  readonly block_hash: TransactionHash;
  /** The index block at which the payers were queried. */
  readonly as_of_block: number;
}

/** The wallet's qualifying payments in the window: authorized by it, of at least 0.001 USD each. */
export interface PaymentFacts {
  /** One entry per day with at least one payment, in any order. */
  readonly days: readonly {
    readonly day: Day;
    /** The number of payments, and their sum. */
    readonly count: number;
    readonly value: Atomic;
  }[];
  /** The last of the payments; null if the window has none. */
  readonly last: { readonly at: Time; readonly tx: TransactionHash } | null;
}

export interface PayeeFact {
  readonly payee: Account;
  /** The sum of the wallet's authorized payments to the payee, of any size, within and before the window. */
  readonly value: Atomic;
  /** The first and the last of these payments. */
  readonly first_at: Time;
  readonly last_at: Time;
  readonly last_tx: TransactionHash;
  /** The sum of everything the payee has sent to the wallet, and of the unpaid parts of holds. */
  readonly returned: Atomic;
  /** The wallet's largest funder when `value` first reached 0.05 USD; null if it had none. */
  readonly funder_at_floor: Account | null;
  /**
   * The number of distinct largest funders of this payee's payers, excluding the wallet, the payee, `largest_funder`,
   * and `funder_at_floor`. A payer counts once its authorized payments to the payee have reached 0.05 USD, with its
   * largest funder at that moment.
   */
  readonly other_funders: number;
  /** The number of these payers, excluding the wallet, without a known funder. */
  readonly unfunded_payers: number;
  /**
   * In scope `selective`, the payers that were looked up among the (at most 16) newest, in any order; none if its payers
   * do not matter, or if it became a payee later. Null in other scopes. `other_funders` counts their distinct funders,
   * and `unfunded_payers` counts all other payers.
   */
  readonly payers: readonly PayerFact[] | null;
}

export interface PayerFact {
  readonly payer: Account;
  /** The block in which its payments to the payee reached 0.05 USD, or the block of the look-up if that is earlier. */
  readonly block: number;
  /**
   * The account that had sent it the most USDC in total by the end of that block (ties go to the first to reach it);
   * null without one, or if more than 10,000 transfers would have to be read.
   */
  readonly funder: Account | null;
}

/**
 * The wallet's outcomes as a merchant, from the escrow contracts' events in the window. Only payments of at least
 * `OUTCOME_FLOOR` count, and none by the wallet itself or by a payer that it funded.
 *
 * Payers with the same largest funder at that moment are one buyer, and so are all payers without a known funder. A
 * buyer-day is a UTC day on which a buyer has at least one such outcome, regardless of the number.
 */
export interface EscrowFacts {
  /**
   * Buyers with a payment that was released to the wallet, except those with the wallet's own largest funder, which may
   * pay both sides.
   */
  readonly buyers: number;
  /** Their buyer-days. */
  readonly release_days: number;
  /** A release on the last of these days; null without one. */
  readonly last_release_tx: TransactionHash | null;
  /**
   * Buyers with a payment to the wallet that a verdict refunded. Refunds by timeout do not count, because anyone may
   * hold for anyone and let the hold lapse. Nor do refunds of input that the merchant refused.
   */
  readonly refunded_buyers: number;
  /** Their buyer-days. */
  readonly refund_days: number;
  /** A refund on the last of these days; null without one. */
  readonly last_refund_tx: TransactionHash | null;
}

export interface SellerExam {
  readonly id: string;
  /** Its public page. */
  readonly url: string;
  /** Scheme, host, and port of the seller. */
  readonly origin: string;
  readonly result: "pass" | "fail";
  /** Null with a FAIL. */
  readonly level: "full" | "safe" | null;
  /** The origin's file named this wallet, which bought the exam. */
  readonly control: "file";
  readonly issued_at: Time;
  /** It is fresh until this instant, exclusive. */
  readonly valid_until: Time;
}

/** The part of the facts that the index and the look-ups provide; the service adds the rest. */
export type ChainReading = Pick<ScoreFacts, "as_of" | "as_of_block" | "chain">;

export const WINDOW_DAYS = 90;
const DAY_MS = 86_400_000;

export const dayOf = (time: Time): Day => time.slice(0, 10);

/** Returns the window that ends with the day of an instant. */
export const windowAt = (asOf: Time): ChainFacts["window"] => ({
  from: new Date(Date.parse(dayOf(asOf)) - (WINDOW_DAYS - 1) * DAY_MS).toISOString().slice(0, 10),
  to: dayOf(asOf),
});

type Key = readonly string[];

/** Ascending by the first key that differs, in code units: independent of language and locale. */
const compare = (a: Key, b: Key): number => {
  const at = a.findIndex((part, index) => part !== b[index]);
  return at < 0 ? 0 : (a[at] ?? "") < (b[at] ?? "") ? -1 : 1;
};

const sortedBy = <T>(items: readonly T[], key: (item: T) => Key): readonly T[] =>
  items.toSorted((a, b) => compare(key(a), key(b)));

/**
 * Returns the same facts in the one order that is scored, hashed, and served: oldest first, then by name; payers by
 * address; the PASS of the exams before the FAIL.
 */
export const inOrder = ({ seller_exams, ...facts }: ScoreFacts): ScoreFacts => ({
  ...facts,
  certificates: sortedBy(facts.certificates, ({ issued_at, id }) => [issued_at, id]),
  chain: {
    ...facts.chain,
    payments: { ...facts.chain.payments, days: sortedBy(facts.chain.payments.days, ({ day }) => [day]) },
    payees: sortedBy(facts.chain.payees, ({ last_at, payee }) => [last_at, payee]).map(payersInOrder),
  },
  seller_exams: sortedBy(seller_exams, ({ result }) => [result]).toReversed(),
});

const payersInOrder = (one: PayeeFact): PayeeFact => ({
  ...one,
  payers: one.payers === null ? null : sortedBy(one.payers, ({ payer }) => [payer]),
});
