/** One side of bench:arbiter. */
export interface Side {
  /** A signed and stored verdict on a claim; the number makes each verdict distinct. */
  readonly decide: (claim: Claim, number: number) => Promise<Decided>;
}

export interface Claim {
  readonly category: string;
  readonly conditions: Readonly<Record<string, string | number>>;
  readonly deal_ref: string;
}

export interface Decided {
  readonly verdict: string;
  /** Milliseconds spent fetching and hashing the deliverable; 0 if there was none. */
  readonly fetchMs: number;
}

export interface SidePlan {
  /** A role that may insert; each side has its own connections. */
  readonly databaseUrl: string;
  readonly baseUrl: string;
  /** 32 bytes. */
  readonly signingSeed: Buffer;
  readonly arbiterKey: `0x${string}`;
  /** Of the deliverable's server on this machine. */
  readonly origin: string;
}
