import { inputsSha256 } from "../inputs-sha256.ts";
import type { ScoreFacts } from "./facts.ts";
import { inOrder } from "./order.ts";
import type { ScoreDocument } from "./record.ts";
import { score } from "./score.ts";

/** The risk score record as served, with its facts and their hash. The order of the facts does not change the bytes. */
export async function scoreDocument(facts: ScoreFacts): Promise<ScoreDocument> {
  const inputs = inOrder(facts);
  return { ...score(inputs), inputs_sha256: await inputsSha256(inputs), inputs };
}
