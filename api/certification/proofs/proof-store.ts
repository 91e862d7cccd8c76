import type { PaymentKey } from "../../kernel/route.ts";
import type { Address, Hex } from "../../kernel/wallet.ts";
import type { WithheldSignature } from "./proof.ts";

/** Withheld signatures, sealed until they are worthless. */
export interface ProofStore {
  /** Those whose `validBefore` is at most `time` (unix seconds), oldest first. */
  due(time: bigint, limit: number): Promise<readonly WithheldSignature[]>;
  /** Those that are still valid, by their payments. */
  live(time: bigint, limit: number): Promise<readonly { readonly certificate: string; readonly payment: PaymentKey }[]>;
  /** Publishes a proof, or none, and wipes the sealed signature, both or neither. Once only: a second time changes nothing. */
  publish(withheld: WithheldSignature, document: object | null): Promise<void>;
}

/** Readings of one chain's USDC. */
export interface UsdcReader {
  /** Unix seconds of the newest final block. */
  finalTime(): Promise<bigint>;
  /** Whether each nonce was used or cancelled, in order. */
  areUsed(authorizations: readonly { readonly payer: Address; readonly nonce: Hex }[]): Promise<readonly boolean[]>;
}
