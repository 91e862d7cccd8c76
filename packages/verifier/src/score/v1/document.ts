import { inputsSha256 } from "../inputs-sha256.ts";
import type { ScoreFacts } from "./facts.ts";
import { inOrder } from "./order.ts";
import type { ScoreDocument } from "./record.ts";
import { score } from "./score.ts";

/** The risk score record as it is served: with its facts, and their hash. Facts in any order give the same bytes. */
export async function scoreDocument(facts: ScoreFacts): Promise<ScoreDocument> {
  const inputs = inOrder(facts);
  return { ...score(inputs), inputs_sha256: await inputsSha256(inputs), inputs };
}
