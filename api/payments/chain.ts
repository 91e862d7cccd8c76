import type { Address, Hex } from "../kernel/wallet.ts";
import type { Expected, Head } from "./scheme.ts";
import type { Settlement, View } from "./step-types.ts";

/** A settlement's block is canonical and not final yet, canonical and final, or neither that this node knows. */
export type Standing = "pending" | "final" | "unknown";

/** Our own reading of one chain; every method rejects when the chain cannot be read. */
export interface Chain {
  head(): Promise<Head>;
  /** The signature of an account with code, by ERC-1271; false for an account without code. */
  verifyContractSignature(payer: Address, digest: Hex, signature: Hex): Promise<boolean>;
  /** The USDC transfer that used an authorization, looked for by payer and nonce. */
  look(expected: Expected): Promise<View>;
  /** What has become of the block of a settlement. */
  standing(settlement: Settlement): Promise<Standing>;
}
