import type { Address, Hex } from "../../platform/wallet.ts";
import type { Call } from "../../platform/relayer/form.ts";

/** What a payer has signed, and how several of them share a transaction of the settlement batch. */
export interface Sharing<Signed> {
  readonly payerOf: (signed: Signed) => { readonly payer: Address; readonly nonce: Hex };
  /** Whether it may share one at all: only what an ordinary account has signed may. */
  readonly fits: (signed: Signed) => boolean;
  readonly several: (signed: readonly Signed[]) => Call;
  /** One by itself goes directly, which costs less; with a gas limit that every ordinary account's is within. */
  readonly single: (signed: Signed) => Call;
}
