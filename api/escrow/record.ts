import { conditionsSha256 } from "../../packages/escrow/src/contest-terms.ts";
import type { Rule } from "../../packages/escrow/src/rules.ts";
import { formatUsd } from "../platform/money.ts";
import type { Hex } from "../platform/wallet.ts";
import { atSecond } from "./contest/contest-record.ts";
import type { ContestAnswer, ContestWindow } from "./contest/store.ts";
import type { Delivery } from "./delivery.ts";
import { DELIVERY_VERSION, sha256 } from "./delivery.ts";
import type { Decision } from "./payment.ts";
import { feeOf, type Hold } from "./payment.ts";

/** An evaluation as stored permanently. */
export interface Evaluation {
  readonly payment: Hex;
  readonly decision: Decision;
  readonly rule: string;
  readonly record: Hex;
  /** The signed document, byte for byte. */
  readonly document: string;
}

/** An evaluation and its outcome on chain. */
export interface Answered {
  readonly evaluation: Evaluation;
  readonly status: "pending" | "released" | "refunded";
  /** The transaction that carried out the decision. */
  readonly transaction: Hex | null;
  /** The answer to the payer's contest; null without a contest, or before it is answered. */
  readonly contest: ContestAnswer | null;
}

export const evaluationPath = (payment: Hex): string => `/escrow/evaluation/${payment}`;

export interface Evaluated {
  readonly hold: Hold;
  readonly delivery: Delivery;
  readonly rule: Rule;
  /** The contest that the payer may make before the release, or null for none. */
  readonly window: ContestWindow | null;
}

interface RecordParts {
  readonly issuer: string;
  readonly url: string;
  readonly now: Date;
  /** The service's accounts, in lowercase. */
  readonly ownWallets: readonly string[];
}

/**
 * Returns the public record of one evaluation, before signing. It contains nothing of the delivery but its length and
 * hash.
 */
export function evaluationRecord(
  { hold, delivery, rule, window }: Evaluated,
  { issuer, url, now, ownWallets }: RecordParts,
) {
  const { maxAmount, payer, receiver } = hold.info;
  return {
    "@context": ["https://www.w3.org/ns/credentials/undefined-terms/v2"],
    type: "EscrowEvaluation",
    id: url,
    issuer,
    payment_id: hold.id,
    network: hold.network,
    contract: hold.contract,
    payer,
    merchant: receiver,
    ...ownPart({ payer, merchant: receiver }, ownWallets),
    amount: maxAmount.toString(),
    amount_usd: formatUsd(maxAmount),
    fee: rule.decision === "release" ? feeOf(maxAmount).toString() : "0",
    hold_transaction: hold.transaction,
    delivery: {
      status: delivery.status,
      content_type: shown(delivery.contentType),
      content_encoding: shown(delivery.contentEncoding),
      body_bytes: delivery.body.length,
      body_sha256: sha256(delivery.body),
    },
    decision: rule.decision,
    rule: rule.id,
    rule_text: rule.when,
    evaluation_version: DELIVERY_VERSION,
    evaluated_at: now.toISOString(),
    ...(window === null ? {} : { contest: contestFacts(window) }),
  };
}

/**
 * Returns which party the service itself is: the demo's merchant, or the buyer of an exam. Absent for all other sales.
 */
function ownPart(
  parties: Readonly<Record<"payer" | "merchant", string>>,
  ownWallets: readonly string[],
): { readonly service_is?: "payer" | "merchant" } {
  const part = (["payer", "merchant"] as const).find((name) => ownWallets.includes(parties[name]));
  return part === undefined ? {} : { service_is: part };
}

const contestFacts = ({ seconds, until, conditions }: ContestWindow) => ({
  seconds,
  until: atSecond(until),
  conditions,
  conditions_sha256: conditionsSha256(conditions),
});

const shown = (header: string | null): string | null => header?.slice(0, 120).replace(/[^\x20-\x7e]/g, "?") ?? null;

/**
 * Returns the hash of a record that the chain stores: SHA-256 of the canonical form (RFC 8785) of the whole signed
 * document.
 */
export const recordHash = sha256;
