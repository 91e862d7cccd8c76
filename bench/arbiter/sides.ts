/** One side of bench:arbiter. */
export interface Side {
  /** A verdict on a claim, signed and stored; its number makes it one of its own. */
  readonly decide: (claim: Claim, number: number) => Promise<Decided>;
}

export interface Claim {
  readonly category: string;
  readonly conditions: Readonly<Record<string, string | number>>;
  readonly deal_ref: string;
}

export interface Decided {
  readonly verdict: string;
  /** Milliseconds in which the deliverable was fetched and hashed; 0 when none was. */
  readonly fetchMs: number;
}

export interface SidePlan {
  /** A role that may insert; each side has connections of its own. */
  readonly databaseUrl: string;
  readonly baseUrl: string;
  /** 32 bytes. */
  readonly signingSeed: Buffer;
  readonly arbiterKey: `0x${string}`;
  /** Of the deliverable's server on this machine. */
  readonly origin: string;
}
