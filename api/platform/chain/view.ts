import type { Asker } from "../http/request.ts";
import type { Address, Hex } from "../wallet.ts";

export type { Authorization } from "../../../packages/escrow/src/authorization.ts";

export interface Head {
  readonly number: number;
  /** Unix seconds. */
  readonly time: bigint;
}

/** What to look for on the chain. */
export interface Expected {
  readonly payer: Address;
  readonly nonce: Hex;
  readonly payTo: Address;
  readonly value: bigint;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly fromBlock: number;
  /** It was submitted a moment ago: what the newest blocks show of it is enough. */
  readonly justSubmitted?: boolean;
  /**
   * No row knows it and its window has closed: three readings in a row tell that it has not paid, also where no block that
   * is final shows that yet. Two of them have to be at blocks of this time or later; Unix seconds.
   */
  readonly unknownAt?: bigint;
}

/**
 * Whether a settlement's block is canonical but not final, canonical and final, or neither, as far as this node knows.
 */
export type SettlementState = "pending" | "final" | "unknown";

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

/** A payment, and the transaction of ours that was mined without settling it. */
export interface FailedPayment
  extends Pick<Expected, "payer" | "nonce" | "payTo" | "value" | "validAfter" | "validBefore"> {
  readonly transaction: Hex;
}

export interface Failed {
  /** Whether the nonce was still unused once the transaction had been mined. */
  readonly isUnused: boolean;
  /** Whether the chain shows that the payer made it fail. */
  readonly isPayersDoing: boolean;
}

/** Our own view of one chain. Every method rejects if the chain cannot be read. */
export interface Chain {
  head(): Promise<Head>;
  /**
   * Verifies a signature by ERC-1271, without its ERC-6492 wrapping; false for an account without code. Of those who ask
   * for very many, some are refused.
   * @param reading.afresh calls the account no matter what is remembered of its code
   */
  verifyContractSignature(
    signed: PayerSignature,
    asker: Asker,
    reading?: { readonly afresh?: boolean },
  ): Promise<boolean>;
  /** Whether an account has code. The same askers are refused. */
  isDeployed(account: Address, asker: Asker): Promise<boolean>;
  /** The USDC transfer that used an authorization, found by payer and nonce. */
  look(expected: Expected): Promise<View>;
  funds(payer: Address, nonces: readonly Hex[]): Promise<Funds>;
  /** What is left of a payment whose transaction was mined without settling it. */
  afterFailure(payment: FailedPayment): Promise<Failed>;
  /** Returns the state of the block that settled a payment. */
  settlementState(settlement: Pick<Settlement, "block" | "blockHash">): Promise<SettlementState>;
}

/** Where the canonical chain shows that the authorization paid us. */
export interface Settlement {
  readonly transaction: `0x${string}`;
  readonly block: number;
  readonly blockHash: `0x${string}`;
  readonly logIndex: number;
}

/**
 * One consistent read by (payer, nonce). `dead` is only ever concluded from a final block. `reverted`: the transaction
 * that we sent was mined without settling, and left the nonce unused.
 */
export type View =
  | { readonly nonce: "unused" }
  /** `excused`: nothing shows that the payer made it fail. */
  | { readonly nonce: "reverted"; readonly transaction: `0x${string}`; readonly excused?: true }
  | { readonly nonce: "paid"; readonly settlement: Settlement; readonly final: boolean }
  | { readonly nonce: "spent" }
  | { readonly nonce: "dead"; readonly reason: "expired" | "nonce_consumed" };
