import type { PaymentKey } from "../../platform/http/route.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import type { WithheldSignature } from "./proof.ts";

/** A withheld signature as it is kept. */
export interface Sealed {
  readonly certificate: string;
  readonly payment: PaymentKey;
  /** @throws if it was sealed with another key */
  readonly open: () => WithheldSignature;
}

/** Withheld signatures, sealed until they are worthless. */
export interface ProofStore {
  /** Those whose `validBefore` is at most `time` (unix seconds) and that were not put off, oldest first. */
  due(time: bigint, limit: number): Promise<readonly Sealed[]>;
  /** Those still valid. */
  live(time: bigint, limit: number): Promise<readonly Omit<Sealed, "open">[]>;
  /**
   * Publishes a proof, or none, and wipes the sealed signature, both or neither. Happens once: a repeat changes
   * nothing.
   */
  publish(withheld: WithheldSignature, document: object | null): Promise<void>;
  /** It is not due for an hour. */
  putOff(payment: PaymentKey): Promise<void>;
}

/** Reads one chain's USDC. */
export interface UsdcReader {
  /** Unix seconds of the newest final block. */
  finalTime(): Promise<bigint>;
  /** For each nonce, in order, whether it was used or canceled. */
  areUsed(authorizations: readonly { readonly payer: Address; readonly nonce: Hex }[]): Promise<readonly boolean[]>;
}
