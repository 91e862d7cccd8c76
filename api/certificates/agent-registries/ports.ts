import type { Statement } from "../../platform/db/transaction.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import type { RegistryOrder } from "./order.ts";
import type { Place, Publication, PublicationReason, PublicationState } from "./publication.ts";

/** A publication whose time has come. */
export interface Due extends Publication {
  /** Since it was ordered. */
  readonly ageSeconds: number;
  /** Whether every payment that its certificate rests on is final, or gone for good. */
  readonly isSettled: boolean;
}

/** What changes with a publication's state. */
export interface Change {
  readonly state: PublicationState;
  readonly lookInSeconds?: number;
  readonly reason?: PublicationReason;
  readonly attempt?: number;
  readonly place?: Place;
  readonly publisher?: Address;
  readonly feedbackIndex?: bigint | null;
  /** The day's gas gets this much back: nothing was sent. */
  readonly unspent?: bigint;
}

/** What a step may cost. */
export interface Allowed {
  /** Of one transaction at most. */
  readonly gas: bigint;
  /** Of all in a day (UTC); one agent has at most a quarter of it. Null for what has to be done. */
  readonly perDay: bigint | null;
}

/** Publications, one for each certificate and registry. */
export interface PublicationStore {
  /** The writes of an order, for the transaction of its sale. */
  ordering(certificate: string, order: RegistryOrder, fromBlock: number): readonly Statement[];
  of(certificate: string): Promise<readonly Publication[]>;
  /** Claims those that are due for a minute each. */
  take(limit: number): Promise<readonly Due[]>;
  lookAgain(publication: Publication, seconds: number): Promise<void>;
  /** Changes one that is still in the state it was read in; false if another process was faster. */
  change(publication: Publication, to: Change): Promise<boolean>;
  /** The same, and charges for it; false also if the day's gas is spent. */
  charge(publication: Publication, to: Change, allowed: Allowed): Promise<boolean>;
  /** Keeps the first document given for a certificate for good, and returns it. */
  keep(certificate: string, document: string): Promise<string>;
  document(certificate: string): Promise<string | null>;
}

/** What a statement says, and where its evidence is. */
export interface Stated {
  readonly product: string;
  readonly isPass: boolean;
  readonly url: string;
  /** The credential, byte for byte. */
  readonly document: string;
}

/**
 * `failed`: mined in a final block, in vain. `unsent`: there is no transaction, and now there cannot be one. A `pending`
 * one may be anywhere.
 */
export type Carried =
  | { readonly state: "mined"; readonly place: Place; readonly publisher: Address; readonly index: bigint | null }
  | { readonly state: "pending" | "failed" | "unsent" };

/** The registries on the chain. Every method rejects if the chain cannot be read. */
export interface Registries {
  /** Who gives the feedback, and the validator that requests must name. */
  readonly publisher: Address;
  /** The most that one transaction may use. */
  readonly gas: bigint;
  /** Why this may not be published about a wallet now; null if it may. */
  unfit(
    publication: Pick<Publication, "agent" | "request" | "contract">,
    wallet: Address,
  ): Promise<"other_wallet" | "other_validator" | null>;
  /** The agent's wallet as of a block, or now if the node has forgotten that block's state. */
  walletAt(agent: bigint, block: number): Promise<Address>;
  /**
   * Looks for the statement on the chain, sends what is missing, and waits a while for its block. What was sent for this
   * attempt is not sent a second time.
   */
  carry(publication: Publication, stated: Stated, step: "publish" | "withdraw"): Promise<Carried>;
  /** What has become of a block, by three readings before it counts as final. */
  standing(place: { readonly block: number; readonly blockHash: Hex }): Promise<"pending" | "final" | "unknown">;
}
