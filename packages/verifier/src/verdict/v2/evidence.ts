import type { JsonObject } from "../../strict-json.ts";

/** Whether a signed offer or receipt is the seller's. It is only for `valid`. */
export type SignatureReason =
  | "valid"
  /** The JWS names a key of a host other than the resource's, or of none. */
  | "other_host"
  /** The header of the JWS has members other than alg, kid, and typ, or an algorithm that does not fit the key. */
  | "header"
  /** The seller's DID document could not be read. */
  | "no_document"
  /** The DID document does not list the key. */
  | "not_listed"
  | "bad_signature"
  /** An EIP-712 signature by an account other than the offer's payTo. */
  | "not_by_payee"
  /** The receipt has a different format from the offer, or names another seller's key. */
  | "other_signer";

/** The required signer, and whether it signed, as published in a verdict. */
export interface SignatureFact {
  readonly fact: "signature";
  readonly of: "offer" | "receipt";
  /** A did:web identifier, or an account in lowercase; null if the JWS names neither. */
  readonly signer: string | null;
  /** The public JWK that the DID document listed. Null for EIP-712, and if no key was found. */
  readonly key: JsonObject | null;
  readonly reason: SignatureReason;
}

/** A transaction as the chain shows it. Only `final` has a block. */
export interface TransactionFact {
  readonly fact: "transaction";
  readonly network: string;
  readonly transaction: string;
  readonly outcome:
    | "final"
    | "not_final"
    | "not_found"
    | "reverted"
    | "too_many_transfers"
    | "unavailable"
    | "network_not_read";
  readonly block: number | null;
  /** The block's time in Unix seconds. */
  readonly time: number | null;
}

/** A nonzero transfer of USDC from the claimant to another account, in a final transaction. */
export interface TransferFact {
  readonly fact: "transfer";
  readonly network: string;
  /** The index in its block. */
  readonly log_index: number;
  /** Addresses in lowercase. */
  readonly asset: string;
  readonly from: string;
  readonly to: string;
  /** Atomic units, in decimal digits. */
  readonly value: string;
  /** Whether it was made by an EIP-3009 authorization of `from`. */
  readonly by_authorization: boolean;
  /** Whether `to` has code, as an escrow does. Null if the nodes did not show it. */
  readonly to_has_code: boolean | null;
}

/** A claim that a payment broke an offer, as submitted. */
export interface OfferBreachClaim {
  readonly offer: JsonObject;
  readonly receipt: JsonObject | null;
  readonly settlement: { readonly network: string; readonly transaction: string };
}

/** The complete evidence of a verdict on the breach of an offer. */
export interface OfferBreachEvidence extends OfferBreachClaim {
  /** The wallet that paid for the verdict, in lowercase. */
  readonly claimant: string;
  readonly signatures: readonly SignatureFact[];
  readonly transactions: readonly TransactionFact[];
  readonly transfers: readonly TransferFact[];
  /** The id of an earlier verdict that decided this transfer; null without one. */
  readonly decidedBy: string | null;
}

/** An item of a verdict's facts on the breach of an offer. */
export type BreachFact =
  | (OfferBreachClaim & { readonly fact: "offer_breach_claim"; readonly claimant: string })
  | SignatureFact
  | TransactionFact
  | TransferFact
  | { readonly fact: "decided_before"; readonly verdict: string };

/** Returns the claim and the observations as a verdict publishes them. Anything that was not examined is omitted. */
export const factsOf = (evidence: OfferBreachEvidence): readonly BreachFact[] =>
  [
    {
      fact: "offer_breach_claim" as const,
      claimant: evidence.claimant,
      offer: evidence.offer,
      receipt: evidence.receipt,
      settlement: evidence.settlement,
    },
    ...evidence.signatures,
    ...evidence.transactions,
    ...evidence.transfers,
    ...(evidence.decidedBy === null ? [] : [{ fact: "decided_before" as const, verdict: evidence.decidedBy }]),
  ].map((fact) => ({ ...fact }));

/** A condition of a claim is true, false, or unknown. */
export type ConditionResult = "true" | "false" | "unknown";

export type Verdict = "release" | "refund" | "escalate";

/** One judged condition. `reason` is one stable word. */
export interface JudgedCondition {
  readonly condition: string;
  readonly expected: string | number;
  /** Null if nothing comparable was observed. */
  readonly observed: string | number | boolean | null;
  readonly result: ConditionResult;
  readonly reason: string;
}
