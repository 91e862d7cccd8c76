import type { Answered } from "../record.ts";
import { evaluationPath } from "../record.ts";
import { atSecond, contestPath, type contestRecord } from "./contest-record.ts";
import type { ContestView } from "./store.ts";

/** The signed answer, parsed. */
type ContestDocument = ReturnType<typeof contestRecord>;

/**
 * Returns a payment's window and its contest, as published. It changes until the payment is over, but its `answer`
 * never does.
 */
export function contestView({ window, contest }: ContestView, { status, transaction }: Answered, baseUrl: string) {
  const { hold, seconds, until, conditions } = window;
  const answer = contest?.answer ?? null;
  return {
    payment_id: hold.id,
    network: hold.network,
    contract: hold.contract,
    payer: hold.info.payer,
    merchant: hold.info.receiver,
    window: { seconds, until: atSecond(until) },
    conditions,
    evaluation_url: `${baseUrl}${evaluationPath(hold.id)}`,
    contest_url: `${baseUrl}${contestPath(hold.id)}`,
    contest: contest && {
      claim: contest.claim,
      claim_sha256: contest.claimSha256,
      made_at: atSecond(contest.madeAt),
      decision: answer?.decision ?? null,
      rule: answer?.rule ?? null,
      record: answer?.record ?? null,
    },
    answer: answer && (JSON.parse(answer.document) as ContestDocument & { readonly proof: object }),
    status,
    transaction,
  };
}
