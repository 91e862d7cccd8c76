import { type Payload, readStatement } from "../../offer-receipt/statement.ts";
import type {
  ConditionResult,
  JudgedCondition,
  OfferBreachEvidence,
  TransactionFact,
  TransferFact,
  Verdict,
} from "./evidence.ts";

/** The first day of version 2 of the policy (UTC): it does not judge earlier payments. */
export const EFFECTIVE_DATE_V2 = "2026-11-23";

/** The networks whose transactions are read, and whether their tokens are test money. */
export const NETWORKS_V2: Readonly<Record<string, { readonly isTest: boolean }>> = {
  "eip155:8453": { isTest: false },
  "eip155:84532": { isTest: true },
};

/** The scheme in which the payer transfers the amount directly to payTo; others pay a contract first. */
const SCHEME_V2 = "exact";

const ADDRESS = /^0x[0-9a-f]{40}$/i;
const AMOUNT = /^(?:0|[1-9]\d{0,77})$/;

export interface Judgment {
  readonly conditions: readonly JudgedCondition[];
  readonly verdict: Verdict;
  /** The one transfer that a release or a refund is about; null for an escalate. */
  readonly transfer: TransferFact | null;
}

type Judged = Pick<JudgedCondition, "expected" | "observed" | "result" | "reason">;

/** Decides: all true is release, any false is refund, anything else is escalate. */
export function decideV2(results: readonly ConditionResult[]): Verdict {
  if (results.includes("false")) return "refund";
  return results.length > 0 && results.every((result) => result === "true") ? "release" : "escalate";
}

/**
 * Judges a claim that a payment broke an offer, by the table of version 2. A term can only be false if everything
 * before it is true: who signed, who claims, what is final, and when it was paid. So missing or forged evidence
 * escalates, whatever the transfer was.
 */
export function judgeOfferBreach(evidence: OfferBreachEvidence): Judgment {
  const offer = readStatement("offer", evidence.offer).payload;
  const receipt = evidence.receipt === null ? null : readStatement("receipt", evidence.receipt).payload;
  const paid = paidBy(evidence, offer);
  const grounds = {
    offer: judgeOffer(evidence, offer),
    receipt: judgeReceipt(evidence, { offer, receipt }),
    claimant: judgeClaimant(evidence, receipt),
    settlement: judgeSettlement(evidence, { ...paid, offer }),
    time: judgeTime(evidence, offer),
  };
  const isGrounded = Object.values(grounds).every(({ result }) => result === "true");
  const terms =
    isGrounded && paid.transfer !== null ? judgeTerms(evidence, { offer, transfer: paid.transfer }) : unjudged(offer);
  const conditions = Object.entries({ ...grounds, ...terms }).map(([condition, judged]) => ({ condition, ...judged }));
  const verdict = decideV2(conditions.map(({ result }) => result));
  return { conditions, verdict, transfer: verdict === "escalate" ? null : paid.transfer };
}

const truth = (expected: Judged["expected"], observed: Judged["observed"], reason: string): Judged => ({
  expected,
  observed,
  result: "true",
  reason,
});
const unknown = (expected: Judged["expected"], reason: string, observed: Judged["observed"] = null): Judged => ({
  expected,
  observed,
  result: "unknown",
  reason,
});
const broken = (expected: Judged["expected"], observed: Judged["observed"], reason: string): Judged => ({
  expected,
  observed,
  result: "false",
  reason,
});

function judgeSignature({ signatures }: OfferBreachEvidence, kind: "offer" | "receipt"): Judged {
  const found = signatures.find(({ of }) => of === kind);
  const expected = `signed by ${shown(found?.signer ?? "the resource's host")}`;
  if (found?.reason === "valid") return truth(expected, found.signer, "authentic");
  return unknown(expected, found?.reason ?? "not_read");
}

function judgeOffer(evidence: OfferBreachEvidence, { scheme, asset, payTo, amount }: Payload): Judged {
  const signed = judgeSignature(evidence, "offer");
  if (signed.result !== "true") return signed;
  if (scheme !== SCHEME_V2) return unknown(signed.expected, "other_scheme", shown(scheme));
  const isReadable = ADDRESS.test(String(asset)) && ADDRESS.test(String(payTo)) && AMOUNT.test(String(amount));
  return isReadable ? signed : unknown(signed.expected, "unreadable_terms");
}

interface Pair {
  readonly offer: Payload;
  readonly receipt: Payload | null;
}

/** Checks that the receipt is for this payment and this offer, as far as the formats show it. */
function judgeReceipt(evidence: OfferBreachEvidence, { offer, receipt }: Pair): Judged {
  const named = evidence.settlement.transaction;
  if (receipt === null) return unknown(named, "no_receipt");
  const signed = judgeSignature(evidence, "receipt");
  if (signed.result !== "true") return { ...signed, expected: named };
  if (receipt.resourceUrl !== offer.resourceUrl) return unknown(named, "other_resource");
  if (receipt.network !== offer.network) return unknown(named, "other_network", shown(receipt.network));
  const transaction = String(receipt.transaction);
  if (transaction === "") return unknown(named, "names_no_transaction");
  return same(transaction, named)
    ? truth(named, lower(transaction), "names_it")
    : unknown(named, "other_transaction", shown(transaction));
}

function judgeClaimant({ claimant }: OfferBreachEvidence, receipt: Payload | null): Judged {
  if (receipt === null) return unknown(claimant, "no_receipt");
  const payer = String(receipt.payer);
  return same(payer, claimant)
    ? truth(claimant, claimant, "is_the_payer")
    : unknown(claimant, "other_payer", shown(payer));
}

const transactionOn = (
  { transactions, settlement }: OfferBreachEvidence,
  network: string,
): TransactionFact | undefined =>
  transactions.find((one) => one.network === network && same(one.transaction, settlement.transaction));

interface Paid {
  readonly transfer: TransferFact | null;
  readonly reason: "no_transfer" | "several_transfers" | "final";
  /** Whether the transfer matches the offer. */
  readonly isExact: boolean;
}

/**
 * Returns the claimant's transfer that was the payment: one that matches the offer if there is any, and otherwise the
 * only one. Among several that do not match, the payment cannot be identified.
 */
function paidBy({ settlement, transfers, claimant }: OfferBreachEvidence, offer: Payload): Paid {
  const own = transfers.filter(({ network, from }) => network === settlement.network && same(from, claimant));
  const exact = own.filter(
    (one) =>
      settlement.network === offer.network &&
      same(one.asset, String(offer.asset)) &&
      same(one.to, String(offer.payTo)) &&
      one.value === offer.amount,
  );
  const [first] = exact.length > 0 ? exact : own;
  const isExact = exact.length > 0;
  if (first === undefined) return { transfer: null, reason: "no_transfer", isExact };
  return !isExact && own.length > 1
    ? { transfer: null, reason: "several_transfers", isExact }
    : { transfer: first, reason: "final", isExact };
}

/** Only exact offers are judged. A payment under another scheme for the same URL breaks none of them. */
function judgeSettlement(
  evidence: OfferBreachEvidence,
  { reason, transfer, isExact, offer }: Paid & { readonly offer: Payload },
): Judged {
  const { settlement, decidedBy } = evidence;
  const found = transactionOn(evidence, settlement.network);
  if (found === undefined) return unknown("final", "not_read");
  if (found.outcome !== "final") return unknown("final", found.outcome);
  if (transfer === null) return unknown("final", reason, found.block);
  const other = isExact ? null : otherScheme(transfer, offer);
  if (other !== null) return unknown("final", other, transfer.to);
  return decidedBy === null ? truth("final", found.block, "final") : unknown("final", "decided_before", decidedBy);
}

/** Returns the reason why a transfer may be a payment under a scheme other than exact. A receipt names no scheme. */
function otherScheme({ to, to_has_code, by_authorization }: TransferFact, { payTo }: Payload): string | null {
  if (!by_authorization) return "not_by_authorization";
  if (same(to, String(payTo)) || to_has_code === false) return null;
  return to_has_code === true ? "paid_to_contract" : "recipient_not_read";
}

function judgeTime(evidence: OfferBreachEvidence, { validUntil }: Payload): Judged {
  const until = Number(validUntil);
  const time = transactionOn(evidence, evidence.settlement.network)?.time ?? null;
  if (time === null) return unknown(until, "not_read");
  if (time * 1000 < Date.parse(EFFECTIVE_DATE_V2)) return unknown(until, "before_this_version", time);
  return time <= until ? truth(until, time, "in_time") : unknown(until, "offer_expired", time);
}

interface Terms {
  readonly offer: Payload;
  readonly transfer: TransferFact;
}

type TermName = "network" | "asset" | "payee" | "amount";

function judgeTerms(evidence: OfferBreachEvidence, terms: Terms): Readonly<Record<TermName, Judged>> {
  const { offer, transfer } = terms;
  const network = judgeNetwork(evidence, String(offer.network));
  if (network.result !== "true") return { ...unjudged(offer), network };
  const [asset, payee] = [lower(String(offer.asset)), lower(String(offer.payTo))];
  return {
    network,
    asset: compared(asset, transfer.asset),
    payee: compared(payee, transfer.to),
    amount: asset === transfer.asset ? judgeAmount(terms) : unknown(String(offer.amount), "other_asset"),
  };
}

/**
 * Judges the network: real money instead of test money is a breach. The reverse costs the payer nothing, and a network
 * that is not read remains unknown.
 */
function judgeNetwork(evidence: OfferBreachEvidence, offered: string): Judged {
  const { network } = evidence.settlement;
  if (network === offered) return truth(offered, network, "match");
  const [promised, charged] = [networkNamed(offered), networkNamed(network)];
  if (promised === undefined || charged === undefined) return unknown(shown(offered), "network_not_read", network);
  if (charged.isTest || !promised.isTest) return unknown(offered, "costs_nothing", network);
  return transactionOn(evidence, offered)?.outcome === "not_found"
    ? broken(offered, network, "mismatch")
    : unknown(offered, "on_both_networks", network);
}

/** An untrusted name may be one that every object inherits, such as `constructor`. */
const networkNamed = (name: string) => (Object.hasOwn(NETWORKS_V2, name) ? NETWORKS_V2[name] : undefined);

const compared = (offered: string, paid: string): Judged =>
  offered === paid ? truth(offered, paid, "match") : broken(offered, paid, "mismatch");

/** Judges the amount: more than offered is a breach. Less is not, because it costs the payer no more than the offer. */
function judgeAmount({ offer, transfer: { value } }: Terms): Judged {
  const amount = String(offer.amount);
  if (value === amount) return truth(amount, value, "match");
  return BigInt(value) > BigInt(amount) ? broken(amount, value, "more") : unknown(amount, "less", value);
}

function unjudged({ network, asset, payTo, amount }: Payload): Readonly<Record<TermName, Judged>> {
  const term = (offered: unknown) => unknown(shown(String(offered)), "not_judged");
  return { network: term(network), asset: term(asset), payee: term(payTo), amount: term(amount) };
}

const lower = (text: string): string => text.toLowerCase();
const same = (one: string, other: string): boolean => lower(one) === lower(other);

/** Untrusted text as published: printable ASCII, truncated. */
const shown = (value: unknown): string =>
  String(value)
    .slice(0, 120)
    .replace(/[^\x20-\x7e]/g, "?");
