import type { Product } from "../vocabulary.ts";

/** An address of 20 bytes, in lower case. */
export type Account = `0x${string}`;
/** The hash of a transaction, 32 bytes, in lower case. */
export type TransactionHash = `0x${string}`;
/** An amount in atomic units of USDC (10^-6), as a decimal text without leading zeros. */
export type Atomic = string;
/**
 * A UTC time as `Date.prototype.toISOString` writes it: `2026-11-25T09:30:00.000Z`. Times of the chain are those of
 * blocks.
 */
export type Time = string;
/** A UTC calendar day: `2026-11-25`. */
export type Day = string;

/**
 * Everything a score is made of, and nothing else, in the form of its JSON. Facts always include their chain part:
 * while the index does not answer, a wallet has no score rather than a lower one.
 */
export interface ScoreFacts {
  readonly wallet: Account;
  /**
   * The instant certificates and payments are judged at: when the facts were read, or the time of block `as_of_block`
   * if that is later. So no time on the chain is after it.
   */
  readonly as_of: Time;
  /** The last block the index had read. All of `chain` is the index's state after that block. */
  readonly as_of_block: number;
  /**
   * At least the newest certificate per product and result that is not reversed. Older and reversed ones change nothing
   * but the hash of the facts. In any order.
   */
  readonly certificates: readonly CertificateFact[];
  readonly chain: ChainFacts;
  /**
   * The newest PASS and the newest FAIL among the exams that count of the sellers who are paid at the wallet: of each
   * request the newest one, neither withdrawn nor reversed, while it is fresh. A FAIL is told only if the wallet itself
   * signed for the exam. In any order.
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
  /** When a settlement it rests on was found to be permanently gone from the chain; null while it stands. */
  readonly reversed_at: Time | null;
}

/**
 * What the index knows about the wallet. Transfers from and to addresses of the service, to oneself, and from and to
 * the zero address are excluded everywhere. An authorized payment is a USDC transfer signed by its payer (EIP-3009). A
 * hold in an escrow is such a payment, to the merchant.
 */
export interface ChainFacts {
  /** CAIP-2 identifier of the chain of all transactions, like `eip155:8453`. */
  readonly network: string;
  /**
   * `selective`: the index has only authorized payments. Funders are looked up in the logs of USDC (`Lookup`).
   */
  readonly scope: "full" | "selective";
  /** The index knows nothing about earlier blocks. Sums without a named window start here. */
  readonly first_block: number;
  /** The 90 UTC calendar days ending with the day of `as_of`; both days are inclusive. */
  readonly window: { readonly from: Day; readonly to: Day };
  readonly payments: PaymentFacts;
  /**
   * Who has sent the wallet the most USDC in total (the first to reach it wins ties). Null if nobody has.
   */
  readonly largest_funder: Account | null;
  /**
   * The (at most 64) payees whose total of authorized payments from the wallet reached 0.05 USD most recently. In any
   * order.
   */
  readonly payees: readonly PayeeFact[];
  readonly escrow: EscrowFacts;
  /** Null in other scopes than `selective`, and if the wallet has no payee whose payers matter. */
  readonly lookup: Lookup | null;
}

/**
 * What was looked up: all transfers of USDC to the wallet, and to payers of its payees, from `first_block` to `block`.
 * Newer ones count as unknown. `largest_funder` and `returned` are as of that block.
 */
export interface Lookup {
  /** A final block, and its hash. */
  readonly block: number;
  readonly block_hash: TransactionHash;
  /** The block after which the index was asked for the payers. */
  readonly as_of_block: number;
}

/** The wallet's qualifying payments in the window: authorized by it, of at least 0.001 USD each. */
export interface PaymentFacts {
  /** One entry per day with at least one, in any order. */
  readonly days: readonly {
    readonly day: Day;
    /** How many, and their sum. */
    readonly count: number;
    readonly value: Atomic;
  }[];
  /** The last of them; null if there is none in the window. */
  readonly last: { readonly at: Time; readonly tx: TransactionHash } | null;
}

export interface PayeeFact {
  readonly payee: Account;
  /** Sum of the wallet's authorized payments to it, of any size, within and before the window. */
  readonly value: Atomic;
  /** The first and the last of these payments. */
  readonly first_at: Time;
  readonly last_at: Time;
  readonly last_tx: TransactionHash;
  /**
   * Sum of everything the payee has sent the wallet, and of what it has not been paid of holds.
   */
  readonly returned: Atomic;
  /**
   * The wallet's largest funder when `value` first reached 0.05 USD; null if it had none.
   */
  readonly funder_at_floor: Account | null;
  /**
   * The payers of this payee are those whose authorized payments to it have reached 0.05 USD, each with its largest
   * funder at that moment. This is how many distinct funders there are, excluding the wallet, the payee,
   * `largest_funder` and `funder_at_floor`.
   */
  readonly other_funders: number;
  /** How many of these payers, excluding the wallet, had no known funder. */
  readonly unfunded_payers: number;
  /**
   * In scope `selective`, those of its (at most 16) newest payers that were looked up, in any order; none if its payers
   * do not matter, or it became a payee later. Null in other scopes. `other_funders` is the number of their distinct
   * funders, `unfunded_payers` that of all other payers.
   */
  readonly payers: readonly PayerFact[] | null;
}

export interface PayerFact {
  readonly payer: Account;
  /** The block in which its payments to the payee reached 0.05 USD, or that of the look-up if that is earlier. */
  readonly block: number;
  /**
   * Who had sent it the most USDC in total by the end of that block (the first to reach it wins ties); null if nobody
   * had, or if more than 10,000 transfers would have to be read.
   */
  readonly funder: Account | null;
}

/**
 * What the escrow contracts' events of the window say about the wallet as merchant. Only payments from `OUTCOME_FLOOR`
 * on, and none by the wallet itself or by one that it funded.
 *
 * Payers with the same largest funder at that moment are one buyer, and so are all those whose funder is not known. A
 * buyer-day is a UTC day on which a buyer has at least one such outcome, however many.
 */
export interface EscrowFacts {
  /**
   * Buyers with a payment that was released to the wallet. Not those that have the wallet's own largest funder: it may
   * pay both sides.
   */
  readonly buyers: number;
  /** Their buyer-days. */
  readonly release_days: number;
  /** A release of the last of these days; null if there is none. */
  readonly last_release_tx: TransactionHash | null;
  /**
   * Buyers with a payment to the wallet that a verdict refunded. Refunds by the clock do not count: anyone may hold for
   * anyone and let it lapse. Nor do those of input that the merchant refused.
   */
  readonly refunded_buyers: number;
  /** Their buyer-days. */
  readonly refund_days: number;
  /** A refund of the last of these days; null if there is none. */
  readonly last_refund_tx: TransactionHash | null;
}

export interface SellerExam {
  readonly id: string;
  /** Its public page. */
  readonly url: string;
  /** Scheme, host and port of the seller. */
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

/** What the index and the look-ups provide; the service adds the rest. */
export type ChainReading = Pick<ScoreFacts, "as_of" | "as_of_block" | "chain">;

export const WINDOW_DAYS = 90;
const DAY_MS = 86_400_000;

export const dayOf = (time: Time): Day => time.slice(0, 10);

/** The window that ends with the day of an instant. */
export const windowAt = (asOf: Time): ChainFacts["window"] => ({
  from: new Date(Date.parse(dayOf(asOf)) - (WINDOW_DAYS - 1) * DAY_MS).toISOString().slice(0, 10),
  to: dayOf(asOf),
});
