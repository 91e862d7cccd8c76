import type { Address, Hex } from "../wallet.ts";
import type { ContractSignatures } from "./signatures.ts";

export type { Authorization } from "../../../packages/escrow/src/authorization.ts";

export interface Head {
  readonly number: number;
  /** Unix seconds. */
  readonly time: bigint;
}

/** The payment to look for on the chain. */
export interface Expected {
  readonly payer: Address;
  readonly nonce: Hex;
  readonly payTo: Address;
  readonly value: bigint;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly fromBlock: number;
  /** It was submitted a moment ago, so that the newest blocks are enough. */
  readonly justSubmitted?: boolean;
  /**
   * The time, in Unix seconds, of an unknown payment whose window has closed. Three readings in a row decide that it
   * has not paid, even if no final block shows that yet. Two of them have to be at blocks of this time or later.
   */
  readonly unknownAt?: bigint;
}

/** Whether a settlement's block is canonical but not final, canonical and final, or not known as either. */
export type SettlementState = "pending" | "final" | "unknown";

/** The payer's balance at one block, in atomic units of USDC, and the nonces that are unused there. */
export interface Funds {
  readonly balance: bigint;
  readonly unused: readonly Hex[];
}

/** An unverified signature of a payer. */
export interface PayerSignature {
  readonly payer: Address;
  readonly digest: Hex;
  readonly signature: Hex;
}

/** A payment, and our transaction that was mined without settling it. */
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
export interface Chain extends Pick<ContractSignatures, "verifyContractSignature" | "isDeployed"> {
  head(): Promise<Head>;
  /** Finds the USDC transfer that used an authorization, by payer and nonce. */
  look(expected: Expected): Promise<View>;
  funds(payer: Address, nonces: readonly Hex[]): Promise<Funds>;
  /** Reads the state of a payment whose transaction was mined without settling it. */
  afterFailure(payment: FailedPayment): Promise<Failed>;
  /** Returns the state of the block that settled a payment. */
  settlementState(settlement: Pick<Settlement, "block" | "blockHash">): Promise<SettlementState>;
}

/** The transfer on the canonical chain by which the authorization paid us. */
export interface Settlement {
  readonly transaction: `0x${string}`;
  readonly block: number;
  readonly blockHash: `0x${string}`;
  readonly logIndex: number;
}

/**
 * One consistent read by (payer, nonce). `dead` is concluded only from a final block. `reverted`: our transaction was
 * mined without settling, and left the nonce unused.
 */
export type View =
  | { readonly nonce: "unused" }
  /** `excused`: there is no evidence that the payer caused the failure. */
  | { readonly nonce: "reverted"; readonly transaction: `0x${string}`; readonly excused?: true }
  | { readonly nonce: "paid"; readonly settlement: Settlement; readonly final: boolean }
  | { readonly nonce: "spent" }
  | { readonly nonce: "dead"; readonly reason: "expired" | "nonce_consumed" };
