import { bytesToHex } from "@noble/hashes/utils.js";
import canonicalize from "canonicalize";
import type { ScoreFacts } from "./facts.ts";
import { inOrder } from "./order.ts";
import type { ScoreDocument } from "./record.ts";
import { score } from "./score.ts";

/**
 * Returns the risk score record as served, with its facts and their hash. The order of the facts does not change the
 * bytes.
 */
export async function scoreDocument(facts: ScoreFacts): Promise<ScoreDocument> {
  const inputs = inOrder(facts);
  return { ...score(inputs), inputs_sha256: await sha256(inputs), inputs };
}

/** Returns the SHA-256 of the RFC 8785 form, in lowercase hex. */
async function sha256(inputs: ScoreFacts): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(canonicalize(inputs)));
  return bytesToHex(new Uint8Array(digest));
}
