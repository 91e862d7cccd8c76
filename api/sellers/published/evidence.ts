import type { Hex } from "../../platform/wallet.ts";
import type { ChainSettlement, KeptEvidence, KeptExchange } from "../record.ts";

/** A transaction that the seller's own answers name as the settlement: a claim, whether the chain has it or not. */
export interface NamedTransaction {
  readonly transaction: Hex;
  /** Numbers of the exchanges whose answers name it. */
  readonly exchanges: readonly number[];
}

/** Claims and what the chain showed, each with what the other says of it. */
export interface SettlementsTold {
  readonly claimed: readonly (NamedTransaction & { readonly isOnChain: boolean })[];
  readonly seen: readonly (ChainSettlement & { readonly claimedIn: readonly number[] })[];
}

/** Compares what the seller's answers name with the payments of the exam that the chain showed. */
export const compareSettlements = (
  named: readonly NamedTransaction[],
  seen: readonly ChainSettlement[],
): SettlementsTold => ({
  claimed: named.map((claim) => ({
    ...claim,
    isOnChain: seen.some(({ transaction }) => transaction === claim.transaction),
  })),
  seen: seen.map((settled) => ({
    ...settled,
    claimedIn: named.find(({ transaction }) => transaction === settled.transaction)?.exchanges ?? [],
  })),
});

/** At most: three payments, and whatever a seller makes up. */
const MOST_NAMED = 10;
/** A settlement is named in a few hundred characters. */
const LONGEST_HEADER = 8_192;

/** Reads the kept evidence, the service's own text. */
export const exchangesOf = (evidence: string | null): readonly KeptExchange[] =>
  evidence === null ? [] : (JSON.parse(evidence) as KeptEvidence).exchanges;

/** The transactions that `PAYMENT-RESPONSE` names, in the order in which they came. */
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
    const said: unknown = JSON.parse(Buffer.from(header, "base64").toString("utf8"));
    const { transaction } = Object(said) as { readonly transaction?: unknown };
    return typeof transaction === "string" && /^0x[0-9a-f]{64}$/i.test(transaction)
      ? (transaction.toLowerCase() as Hex)
      : null;
  } catch {
    return null;
  }
}
