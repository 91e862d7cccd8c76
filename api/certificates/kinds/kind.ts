import type { Atomic } from "../../platform/money.ts";
import type { Sale } from "../../platform/http/route.ts";
import type { Detected, Result } from "../certificate.ts";
import type { SingleProduct } from "../products.ts";

/** What a test run showed. */
export interface Finding {
  readonly result: Result;
  readonly level: string;
  readonly checks: Readonly<Record<string, Result>>;
  readonly detected: Detected;
}

/**
 * A single-step test: one payment, judged by what was signed and settled. The version goes up when the judgment
 * changes.
 */
export interface Kind<Name extends SingleProduct = SingleProduct> {
  readonly product: Name;
  readonly testVersion: number;
  readonly price: Atomic;
  readonly summary: string;
  readonly description: string;
  readonly steps: readonly string[];
  readonly judge: (
    sale: Pick<Sale<unknown>, "payment" | "version" | "validAfter" | "validBefore" | "receivedAt">,
  ) => Finding;
}
