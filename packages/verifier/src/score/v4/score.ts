import { score as scoreV3 } from "../v3/score.ts";
import { SCORE_VERSION } from "./bands.ts";
import type { ScoreFacts, SellerExam } from "./facts.ts";
import { inOrder } from "./order.ts";
import type { Assessment, ExamFact } from "./record.ts";

/**
 * The risk score of a wallet: score_version 4, a pure function in whole numbers. The same facts give the same answer,
 * in whatever order. `facts` satisfy `parseScoreFacts`.
 */
export function score(facts: ScoreFacts): Assessment {
  const { seller_exams, ...known } = inOrder(facts);
  const { evidence, components, ...assessed } = scoreV3(known);
  const exams = seller_exams.map((exam) => examFact(exam, facts.as_of));
  const outcomes = components.escrow_outcomes;
  const pages = new Set([
    ...evidence.flatMap((one) => ("url" in one ? [one.url] : [])),
    ...exams.map(({ url }) => url),
  ]);
  return {
    ...assessed,
    score_version: SCORE_VERSION,
    components: { ...components, escrow_outcomes: { ...outcomes, facts: [...outcomes.facts, ...exams] } },
    evidence: [...[...pages].map((url) => ({ url })), ...evidence.filter((one) => "tx" in one)],
  };
}

const examFact = ({ id: _, ...exam }: SellerExam, asOf: string): ExamFact => ({
  kind: "seller_exam",
  counts: false,
  fresh: asOf < exam.valid_until,
  ...exam,
});
