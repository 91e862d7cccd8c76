import type { Hex } from "../../platform/wallet.ts";
import type { Judged } from "./grounds.ts";
import type { Contest, OpenedWindow } from "./store.ts";

export const CONTEST_PATH = "/escrow/contest";
export const contestPath = (payment: Hex): string => `${CONTEST_PATH}/${payment}`;

export interface ContestFound {
  readonly contest: Contest;
  readonly window: OpenedWindow;
  readonly judged: Judged;
}

/** Returns the chain's time as text. */
export const atSecond = (seconds: number): string => new Date(seconds * 1000).toISOString();

/** Returns the public record of one contest's answer, before signing. */
export function contestRecord(
  { contest, window, judged }: ContestFound,
  { issuer, url, now }: { readonly issuer: string; readonly url: string; readonly now: Date },
) {
  const { hold } = window;
  const { rule, facts } = judged;
  return {
    "@context": ["https://www.w3.org/ns/credentials/undefined-terms/v2"],
    type: "EscrowContest",
    id: url,
    issuer,
    payment_id: contest.payment,
    network: hold.network,
    contract: hold.contract,
    payer: hold.info.payer,
    merchant: hold.info.receiver,
    window: { seconds: window.seconds, until: atSecond(window.until) },
    conditions: window.conditions,
    delivery: window.delivered,
    claim: contest.claim,
    claim_sha256: contest.claimSha256,
    claim_signature: contest.signature,
    made_at: atSecond(contest.madeAt),
    decision: rule.decision,
    rule: rule.id,
    rule_text: rule.when,
    facts,
    answered_at: now.toISOString(),
  };
}
