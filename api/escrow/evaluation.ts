/** The version of what a merchant signs for a delivery, and of the rules by which it is evaluated. */
export const DELIVERY_VERSION = 1;

/** What a merchant's server answered its buyer, as the merchant forwards it. */
export interface Delivery {
  /** HTTP status. */
  readonly status: number;
  /** The content type it was sent with; null if unknown. */
  readonly contentType: string | null;
  /** `Content-Encoding` as sent; null if it was absent. */
  readonly contentEncoding: string | null;
  /** As sent: in its content coding. */
  readonly body: Uint8Array;
  /** What the payer may contest, as the merchant states it; null for nothing. */
  readonly contest: StatedContest | null;
}

/** The terms of a contest as they are forwarded, with what the payer's salt was made of. */
export interface StatedContest {
  readonly seconds: number;
  /** By category; as submitted. */
  readonly conditions: Readonly<Record<string, unknown>>;
  readonly saltNonce: bigint;
}

export type Decision = "release" | "refund";
