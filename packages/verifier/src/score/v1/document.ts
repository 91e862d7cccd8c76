import canonicalize from "canonicalize";
import type { ScoreFacts } from "./facts.ts";
import { inOrder } from "./order.ts";
import type { ScoreDocument } from "./record.ts";
import { score } from "./score.ts";

/** The risk score record as it is served: with its facts, and their hash. Facts in any order give the same bytes. */
export async function scoreDocument(facts: ScoreFacts): Promise<ScoreDocument> {
  const inputs = inOrder(facts);
  return { ...score(inputs), inputs_sha256: await sha256(canonicalize(inputs) as string), inputs };
}

async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
