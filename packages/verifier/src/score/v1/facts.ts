/** An address of 20 bytes, in lower case. */
export type Account = `0x${string}`;
/** The hash of a transaction, 32 bytes, in lower case. */
export type TransactionHash = `0x${string}`;
/** An amount in atomic units of USDC (10^-6), as a decimal text without leading zeros. */
export type Atomic = string;
/** A UTC time as `Date.prototype.toISOString` writes it: `2026-11-25T09:30:00.000Z`. Times of the chain are those of blocks. */
export type Time = string;
/** A UTC calendar day: `2026-11-25`. */
export type Day = string;

/**
 * Everything that a score is made of, and nothing else, in the form of its JSON. There are no facts without their chain part:
 * while the index does not answer, a wallet has no score, not a lower one.
 */
export interface ScoreFacts {
  readonly wallet: Account;
  /**
   * The instant that certificates and payments are judged at: when the facts were read, or the time of block `as_of_block`
   * when that is later. So no time of the chain lies after it.
   */
  readonly as_of: Time;
  /** The last block that the index had read. All of `chain` is what it held after that block. */
  readonly as_of_block: number;
  /**
   * At least, for each product and result, the newest one that is not reversed. Older and reversed ones change nothing but the
   * hash of the facts. In any order.
   */
  readonly certificates: readonly CertificateFact[];
  readonly chain: ChainFacts;
}

/** What the index gives; the service adds the rest. */
export type ChainReading = Pick<ScoreFacts, "as_of" | "as_of_block" | "chain">;

export type Product = "basic" | "suite" | "scam" | "recipient";

export interface CertificateFact {
  readonly id: string;
  /** Its public page. */
  readonly url: string;
  readonly product: Product;
  readonly result: "pass" | "fail";
  readonly issued_at: Time;
  /** It is fresh up to, not including, this instant. */
  readonly valid_until: Time;
  /** When a settlement that it rests on was found to be gone from the chain for good; null while it stands. */
  readonly reversed_at: Time | null;
}

/**
 * What the index knows of the wallet. Transfers from and to addresses of the service, to oneself, and from and to the zero
 * address are nowhere in it. An authorised payment is a USDC transfer that its payer signed (EIP-3009).
 */
export interface ChainFacts {
  /** CAIP-2 identifier of the chain that all transactions are on, like `eip155:8453`. */
  readonly network: string;
  /** `authorised`: the index has authorised payments only, so that nobody's funders are known. */
  readonly scope: "full" | "authorised";
  /** The index knows nothing of earlier blocks. Sums that name no window run from here. */
  readonly first_block: number;
  /** The 90 UTC calendar days that end with the day of `as_of`; both days are in it. */
  readonly window: { readonly from: Day; readonly to: Day };
  readonly payments: PaymentFacts;
  /**
   * Who has sent the wallet the most USDC in all (of equals, the first to reach it). Null when nobody has, and in scope
   * `authorised`.
   */
  readonly largest_funder: Account | null;
  /** The (at most 64) payees to whom the sum of the wallet's authorised payments reached 0.05 USD last. In any order. */
  readonly payees: readonly PayeeFact[];
  readonly escrow: EscrowFacts;
}

/** The wallet's qualifying payments in the window: authorised by it, of at least 0.001 USD each. */
export interface PaymentFacts {
  /** One entry a day with at least one, in any order. */
  readonly days: readonly {
    readonly day: Day;
    /** How many, and their sum. */
    readonly count: number;
    readonly value: Atomic;
  }[];
  /** The last of them; null when there is none in the window. */
  readonly last: { readonly at: Time; readonly tx: TransactionHash } | null;
}

export interface PayeeFact {
  readonly payee: Account;
  /** Sum of the wallet's authorised payments to it, of any size, in and before the window. */
  readonly value: Atomic;
  /** The first and the last of these payments. */
  readonly first_at: Time;
  readonly last_at: Time;
  readonly last_tx: TransactionHash;
  /** Sum of all that the payee has sent the wallet; in scope `authorised`, of its authorised payments. */
  readonly returned: Atomic;
  /** The wallet's largest funder when `value` first reached 0.05 USD; null when nobody was, and in scope `authorised`. */
  readonly funder_at_floor: Account | null;
  /**
   * The payers of this payee are those whose authorised payments to it have reached 0.05 USD, each with the largest funder that
   * it had at that moment. How many distinct ones there are, without the wallet, the payee, `largest_funder` and
   * `funder_at_floor`. Null in scope `authorised`.
   */
  readonly other_funders: number | null;
  /** How many of these payers, the wallet aside, had no known funder. Null in scope `authorised`. */
  readonly unfunded_payers: number | null;
}

/** What the escrow contracts' events say of the wallet as merchant. */
export interface EscrowFacts {
  /** Distinct payers, the wallet aside, of whose payments at least one was released to it. */
  readonly release_payers: number;
  /** The last release to it from another; null when `release_payers` is 0. */
  readonly last_release_tx: TransactionHash | null;
  /** Payments to it that a verdict refunded. The clock's refunds do not count: anybody may hold for anybody, and let it pass. */
  readonly refunds_against: number;
  /** The last of them; null when there is none. */
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
