import type { Facts } from "../chain-facts.ts";
import { type Exchange, isSuccess, statusOf } from "../exchange.ts";
import type { Payment } from "../payment.ts";
import type { Visit } from "../visit.ts";
import { type CheckResult, judged, notApplicable, shownBy } from "../vocabulary.ts";

/** Pauses between retries, as a patient client makes them. */
const PAUSES_MS = [1_000, 2_000, 4_000, 8_000];

/** Sends a paid request, hangs up, and asks again with the same payment. Judged once the chain is known. */
export async function loseAnswer(visit: Visit, payment: Payment | null): Promise<(facts: Facts) => CheckResult> {
  if (payment === null) return () => notApplicable("lost_answer", "all payments of the exam were spent before");
  const lost = await visit.askAndHangUp(payment.headers);
  const retries = await retried(visit, payment);
  const all = [lost, ...retries];
  const isAnswered = retries.some(isSuccess);
  const { nonce } = payment.authorization;
  return ({ settled, returned }) =>
    judged("lost_answer", [
      shownBy(...all)(
        "lost_answer.answered",
        `The same payment brings the lost answer (got ${retries.map(statusOf).join(", ")})`,
        isAnswered,
      ),
      shownBy(...all.slice(-1))(
        "lost_answer.not_charged",
        "No buyer is charged without a result",
        isAnswered || !settled.has(nonce) || returned.has(nonce),
      ),
    ]);
}

/** Retries until there is a result, or a refusal that waiting does not change. */
async function retried(visit: Visit, payment: Payment): Promise<readonly Exchange[]> {
  const retries: Exchange[] = [];
  for (const pause of PAUSES_MS) {
    if (visit.left() === 0) break;
    await visit.parts.sleep(pause);
    const retry = await visit.ask(payment.headers);
    retries.push(retry);
    if (retry.answer !== null && !isTemporary(retry.answer.status)) break;
  }
  return retries;
}

/** Whether a result may follow later: in progress, too many requests, or a server error. */
const isTemporary = (status: number): boolean => [409, 425, 429].includes(status) || status >= 500;
