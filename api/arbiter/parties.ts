import type { NotYet } from "../platform/http/route.ts";
import type { Address, Hex } from "../platform/wallet.ts";

/** The buyer and the seller of a deal. */
export interface Parties {
  readonly payer: Address;
  readonly payee: Address;
}

/**
 * The sources that can name a deal's parties: our escrow contract, the offer that the payee signed, or the claimant.
 */
export const PARTIES_SOURCES = ["escrow_contract", "signed_offer", "claimant"] as const;

export type PartiesSource = (typeof PARTIES_SOURCES)[number];

/** Looks up the parties of payments in the service's own escrow contracts. Rejects if the chain cannot be read. */
export interface EscrowDeals {
  parties(payment: Hex): Promise<Parties | null>;
}

/** A party's risk, as the scored variant reports it. */
export interface PartyTier {
  readonly wallet: Address;
  readonly score: number;
  readonly tier: string;
}

export interface PartyTiers {
  readonly payer: PartyTier;
  readonly payee: PartyTier;
}

/** Both parties' risk, as of one block. */
export interface Tiers {
  /** Looks up the history behind the tiers on behalf of a client. Returns null once nothing is missing. */
  prepare(parties: Parties, client: string): Promise<NotYet | null>;
  /** Returns whether the tiers can be read right now. */
  ready(parties: Parties): Promise<boolean>;
  /** Returns the tiers. Rejects while they cannot be read. */
  of(parties: Parties): Promise<PartyTiers>;
}
