import { claimsOf } from "../claims.ts";
import { quote } from "../refusal.ts";
import { isObject, parseStrictJson } from "../strict-json.ts";
import { replayVerdict, type VerdictReplay } from "../verdict/replay.ts";
import { FLAG, readArguments, readSource, withViem } from "./arguments.ts";

const USAGE = `Recomputes a verdict on the breach of an offer, offline, from its published evidence.

  agent-payment-trust-verifier verdict <file | URL | -> [--json]

The source is the JSON of a verdict of the category offer-breach. The signatures of the offer and the receipt are checked again
with the key in the verdict. Ask the seller's host whether it listed that key, and the chain whether the transaction is final.
Check the arbiter's own signature with the subcommand document. EIP-712 requires the viem package:
npm install viem.

Exit codes: 0 the evidence gives this verdict; 1 it gives a different one; 2 usage error, or not such a verdict.`;

/**
 * The subcommand `verdict`. @throws InputError for wrong usage, or for a source that is not a verdict on the breach of
 * an offer
 */
export async function checkVerdict(args: readonly string[]): Promise<0 | 1> {
  const { source, json } = readArguments(args, USAGE, { json: FLAG });
  const text = await readSource(source);
  const replay = await withViem(() => replayVerdict(text));
  const document = parseStrictJson(text);
  const claims = isObject(document) ? claimsOf(document) : null;
  const about = claims === null ? [] : [claims.about, ...claims.details];
  console.log(json ? JSON.stringify({ ...replay, claims }, null, 2) : render(replay, about));
  return replay.same ? 0 : 1;
}

const render = ({ same, computed, conditions, differences }: VerdictReplay, about: readonly string[]): string =>
  [
    `${same ? "same" : "DIFFERS"}: the evidence gives ${computed}`,
    ...conditions.map(
      ({ condition, result, reason, observed }) =>
        `  ${result.padEnd(7)}  ${condition.padEnd(10)}  ${reason}${observed === null ? "" : `: ${quote(observed)}`}`,
    ),
    ...differences.map((one) => `  ${one}`),
    ...about.map((one) => `  about  ${one}`),
  ].join("\n");
