import type { JsonObject } from "../../strict-json.ts";

/** Whether a signed offer or receipt is the seller's. Only `valid` says so. */
export type SignatureReason =
  | "valid"
  /** The JWS names a key of another host than the resource's, or of none. */
  | "other_host"
  /** The header of the JWS has more than alg, kid and typ, or an algorithm that the key is not for. */
  | "header"
  /** The seller's DID document could not be read. */
  | "no_document"
  /** It does not list the key. */
  | "not_listed"
  | "bad_signature"
  /** An EIP-712 signature by another account than the offer's payTo. */
  | "not_by_payee"
  /** The receipt has another format than the offer, or names another seller's key. */
  | "other_signer";

/** Who has to have signed, and whether they did. As published in a verdict. */
export interface SignatureFact {
  readonly fact: "signature";
  readonly of: "offer" | "receipt";
  /** A did:web identifier, or an account in lower case; null if the JWS names neither. */
  readonly signer: string | null;
  /** The public JWK that the DID document listed. Null for EIP-712, and where there is none. */
  readonly key: JsonObject | null;
  readonly reason: SignatureReason;
}

/** What a chain shows of a transaction. Only `final` carries a block. */
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

/** A transfer of USDC by the claimant to somebody else, of more than nothing, in a final transaction. */
export interface TransferFact {
  readonly fact: "transfer";
  readonly network: string;
  /** In its block. */
  readonly log_index: number;
  /** Addresses in lower case. */
  readonly asset: string;
  readonly from: string;
  readonly to: string;
  /** Atomic units, as decimal digits. */
  readonly value: string;
  /** Made by an EIP-3009 authorization of `from`. */
  readonly by_authorization: boolean;
  /** Whether `to` has code, as an escrow has. Null if the nodes did not show it. */
  readonly to_has_code: boolean | null;
}

/** A claim that a payment broke an offer, as submitted. */
export interface OfferBreachClaim {
  readonly offer: JsonObject;
  readonly receipt: JsonObject | null;
  readonly settlement: { readonly network: string; readonly transaction: string };
}

/** All that a verdict on an offer's breach rests on. */
export interface OfferBreachEvidence extends OfferBreachClaim {
  /** Who paid for the verdict, in lower case. */
  readonly claimant: string;
  readonly signatures: readonly SignatureFact[];
  readonly transactions: readonly TransactionFact[];
  readonly transfers: readonly TransferFact[];
  /** The id of the verdict that has decided this transfer before; null if none has. */
  readonly decidedBy: string | null;
}

/** An item of a verdict's facts on an offer's breach. */
export type BreachFact = Readonly<Record<string, unknown>> & {
  readonly fact: "offer_breach_claim" | "signature" | "transaction" | "transfer" | "decided_before";
};

/** The claim and what was seen, as a verdict publishes it. What was not looked at is not in it. */
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
