import type { Asker } from "../kernel/client.ts";
import type { Address, Hex } from "../kernel/wallet.ts";
import type { Expected, Head } from "./scheme.ts";
import type { Settlement, View } from "./step-types.ts";

/**
 * Whether a settlement's block is canonical but not final, canonical and final, or neither, as far as this node knows.
 */
export type Standing = "pending" | "final" | "unknown";

/** What a payer has at one block, in atomic units of USDC, and which of its nonces are unused there. */
export interface Funds {
  readonly balance: bigint;
  readonly unused: readonly Hex[];
}

/** What a payer is said to have signed. */
export interface PayerSignature {
  readonly payer: Address;
  readonly digest: Hex;
  readonly signature: Hex;
}

/** Our own view of one chain. Every method rejects if the chain cannot be read. */
export interface Chain {
  head(): Promise<Head>;
  /** Verifies a signature by ERC-1271; false for an account without code. Of those who ask for very many, some are refused. */
  verifyContractSignature(signed: PayerSignature, asker: Asker): Promise<boolean>;
  /** The USDC transfer that used an authorization, found by payer and nonce. */
  look(expected: Expected): Promise<View>;
  funds(payer: Address, nonces: readonly Hex[]): Promise<Funds>;
  /** Whether the nonce was still unused once a transaction had been mined. */
  unusedAfter(transaction: Hex, authorization: Pick<Expected, "payer" | "nonce">): Promise<boolean>;
  /** What has become of a settlement's block. */
  standing(settlement: Pick<Settlement, "block" | "blockHash">): Promise<Standing>;
}
