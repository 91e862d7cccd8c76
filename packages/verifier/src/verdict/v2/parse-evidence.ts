import { InputError, quote } from "../../refusal.ts";
import { isObject, type Json, type JsonObject } from "../../strict-json.ts";
import type { OfferBreachEvidence, SignatureFact, TransactionFact, TransferFact } from "./evidence.ts";

/**
 * Returns the evidence in the facts of a verdict on the breach of an offer.
 * @throws InputError if a required fact is missing or has another form
 */
export function parseEvidence(facts: readonly JsonObject[]): OfferBreachEvidence {
  const named = (name: string) => facts.filter(({ fact }) => fact === name);
  const [claim, ...more] = named("offer_breach_claim");
  if (claim === undefined || more.length > 0) throw new InputError("The verdict does not publish its one claim.");
  const { offer, receipt, settlement, claimant } = claim;
  if (!isObject(offer) || !isObject(settlement) || !(receipt === null || isObject(receipt)))
    throw new InputError("The verdict's claim has no offer, receipt and settlement.");
  return {
    offer,
    receipt,
    settlement: {
      network: text(settlement.network, "settlement.network"),
      transaction: text(settlement.transaction, "settlement.transaction"),
    },
    claimant: text(claimant, "claimant"),
    signatures: named("signature").map(signatureOf),
    transactions: named("transaction").map(transactionOf),
    transfers: named("transfer").map(transferOf),
    decidedBy: decidedBy(named("decided_before")),
  };
}

function text(value: Json | undefined, name: string): string {
  if (typeof value === "string") return value;
  throw new InputError(`The verdict's ${name} is ${quote(value)}; expected a string.`);
}

function whole(value: Json | undefined, name: string): number {
  if (Number.isSafeInteger(value) && Number(value) >= 0) return Number(value);
  throw new InputError(`The verdict's ${name} is ${quote(value)}; expected a whole number.`);
}

function truth(value: Json | undefined, name: string): boolean {
  if (typeof value === "boolean") return value;
  throw new InputError(`The verdict's ${name} is ${quote(value)}; expected true or false.`);
}

const signatureOf = ({ of, signer, key, reason }: JsonObject): SignatureFact =>
  ({
    fact: "signature",
    of: text(of, "signature"),
    signer: signer === null ? null : text(signer, "signer"),
    key: isObject(key) ? key : null,
    reason: text(reason, "signature"),
  }) as SignatureFact;

const transactionOf = ({ network, transaction, outcome, block, time }: JsonObject): TransactionFact =>
  ({
    fact: "transaction",
    network: text(network, "network"),
    transaction: text(transaction, "transaction"),
    outcome: text(outcome, "outcome"),
    block: block === null ? null : whole(block, "block"),
    time: time === null ? null : whole(time, "time"),
  }) as TransactionFact;

function transferOf({ network, log_index, asset, from, to, value, ...more }: JsonObject): TransferFact {
  const amount = text(value, "transfer");
  if (!/^[1-9]\d*$/.test(amount))
    throw new InputError(`The verdict's transfer is of ${quote(value)}; expected atomic units.`);
  return {
    fact: "transfer",
    network: text(network, "network"),
    log_index: whole(log_index, "log_index"),
    asset: text(asset, "asset"),
    from: text(from, "from"),
    to: text(to, "to"),
    value: amount,
    by_authorization: truth(more.by_authorization, "by_authorization"),
    to_has_code: more.to_has_code === null ? null : truth(more.to_has_code, "to_has_code"),
  };
}

function decidedBy([first]: readonly JsonObject[]): string | null {
  return first === undefined ? null : text(first.verdict, "decided_before");
}
