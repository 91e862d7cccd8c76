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
export type ScoreFacts = ScoreFactsOf<EscrowFacts>;

/** The same with what a version knows of the wallet as merchant. */
export interface ScoreFactsOf<Escrow> {
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
  readonly chain: ChainFactsOf<Escrow>;
}

/** `retry` is known from version 3 on. */
export type Product = "basic" | "suite" | "scam" | "recipient" | "retry";

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
 * the zero address are excluded everywhere. An authorised payment is a USDC transfer signed by its payer (EIP-3009).
 */
export type ChainFacts = ChainFactsOf<EscrowFacts>;

/** The same with what a version knows of the wallet as merchant. */
export interface ChainFactsOf<Escrow> {
  /** CAIP-2 identifier of the chain of all transactions, like `eip155:8453`. */
  readonly network: string;
  /** `authorised`: the index has only authorised payments, so nobody's funders are known. */
  readonly scope: "full" | "authorised";
  /** The index knows nothing about earlier blocks. Sums without a named window start here. */
  readonly first_block: number;
  /** The 90 UTC calendar days ending with the day of `as_of`; both days are inclusive. */
  readonly window: { readonly from: Day; readonly to: Day };
  readonly payments: PaymentFacts;
  /**
   * Who has sent the wallet the most USDC in total (the first to reach it wins ties). Null if nobody has, and in scope
   * `authorised`.
   */
  readonly largest_funder: Account | null;
  /**
   * The (at most 64) payees whose total of authorised payments from the wallet reached 0.05 USD most recently. In any
   * order.
   */
  readonly payees: readonly PayeeFact[];
  readonly escrow: Escrow;
}

/** The wallet's qualifying payments in the window: authorised by it, of at least 0.001 USD each. */
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
  /** Sum of the wallet's authorised payments to it, of any size, within and before the window. */
  readonly value: Atomic;
  /** The first and the last of these payments. */
  readonly first_at: Time;
  readonly last_at: Time;
  readonly last_tx: TransactionHash;
  /** Sum of everything the payee has sent the wallet; in scope `authorised`, of its authorised payments. */
  readonly returned: Atomic;
  /**
   * The wallet's largest funder when `value` first reached 0.05 USD; null if it had none, and in scope `authorised`.
   */
  readonly funder_at_floor: Account | null;
  /**
   * The payers of this payee are those whose authorised payments to it have reached 0.05 USD, each with its largest
   * funder at that moment. This is how many distinct funders there are, excluding the wallet, the payee,
   * `largest_funder` and `funder_at_floor`. Null in scope `authorised`.
   */
  readonly other_funders: number | null;
  /** How many of these payers, excluding the wallet, had no known funder. Null in scope `authorised`. */
  readonly unfunded_payers: number | null;
}

/** What the escrow contracts' events say about the wallet as merchant. */
export interface EscrowFacts {
  /** Distinct payers, excluding the wallet, with at least one payment released to it. */
  readonly release_payers: number;
  /** The last release to it from another wallet; null if `release_payers` is 0. */
  readonly last_release_tx: TransactionHash | null;
  /**
   * Payments to it that a verdict refunded. Refunds by the clock do not count: anyone may hold for anyone and let it
   * lapse.
   */
  readonly refunds_against: number;
  /** The last of them; null if there is none. */
  readonly last_refund_tx: TransactionHash | null;
}

export const WINDOW_DAYS = 90;
const DAY_MS = 86_400_000;

export const dayOf = (time: Time): Day => time.slice(0, 10);

/** The window that ends with the day of an instant. */
export const windowAt = (asOf: Time): ChainFacts["window"] => ({
  from: new Date(Date.parse(dayOf(asOf)) - (WINDOW_DAYS - 1) * DAY_MS).toISOString().slice(0, 10),
  to: dayOf(asOf),
});
