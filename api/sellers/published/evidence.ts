import type { Hex } from "../../platform/wallet.ts";
import type { ChainSettlement } from "../record.ts";
import type { KeptEvidence, KeptExchange } from "./schemas.ts";

/** A transaction that the seller's answers name as the settlement, whether or not it is on the chain. */
export interface NamedTransaction {
  readonly transaction: Hex;
  /** The numbers of the exchanges whose answers name it. */
  readonly exchanges: readonly number[];
}

/** The seller's claims and the chain's settlements, each matched against the other. */
export interface MatchedSettlements {
  readonly claimed: readonly (NamedTransaction & { readonly isOnChain: boolean })[];
  readonly seen: readonly (ChainSettlement & { readonly claimedIn: readonly number[] })[];
}

/** Compares the transactions that the seller's answers name with the exam's payments on the chain. */
export const compareSettlements = (
  named: readonly NamedTransaction[],
  seen: readonly ChainSettlement[],
): MatchedSettlements => ({
  claimed: named.map((claim) => ({
    ...claim,
    isOnChain: seen.some(({ transaction }) => transaction === claim.transaction),
  })),
  seen: seen.map((settled) => ({
    ...settled,
    claimedIn: named.find(({ transaction }) => transaction === settled.transaction)?.exchanges ?? [],
  })),
});

/** The most transactions that are read: three payments, and some that a seller makes up. */
const MOST_NAMED = 10;
/** A header that names a settlement has a few hundred characters. */
const LONGEST_HEADER = 8_192;

/** Parses the kept evidence, which is the service's own text. */
export const exchangesOf = (evidence: string | null): readonly KeptExchange[] =>
  evidence === null ? [] : (JSON.parse(evidence) as KeptEvidence).exchanges;

/** Returns the transactions named in `PAYMENT-RESPONSE`, in the order in which they arrived. */
export function namedTransactions(exchanges: readonly KeptExchange[]): readonly NamedTransaction[] {
  const named = new Map<Hex, number[]>();
  for (const { number, answer } of exchanges) {
    const header = answer?.headers["payment-response"] ?? answer?.headers["x-payment-response"];
    const transaction = header === undefined ? null : transactionIn(header);
    if (transaction === null) continue;
    named.set(transaction, [...(named.get(transaction) ?? []), number]);
  }
  return [...named].slice(0, MOST_NAMED).map(([transaction, numbers]) => ({ transaction, exchanges: numbers }));
}

function transactionIn(header: string): Hex | null {
  if (header.length > LONGEST_HEADER) return null;
  try {
    const settlement: unknown = JSON.parse(Buffer.from(header, "base64").toString("utf8"));
    const { transaction } = Object(settlement) as { readonly transaction?: unknown };
    return typeof transaction === "string" && /^0x[0-9a-f]{64}$/i.test(transaction)
      ? (transaction.toLowerCase() as Hex)
      : null;
  } catch {
    return null;
  }
}
