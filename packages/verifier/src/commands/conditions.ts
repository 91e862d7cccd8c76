import { createHash } from "node:crypto";
import { jcs } from "../jcs.ts";
import { InputError, parseInput, quote } from "../refusal.ts";
import { isObject, parseStrictJson, parseUnsignedJson } from "../strict-json.ts";
import { readArguments, readSource, TEXT } from "./arguments.ts";

const USAGE = `Computes the conditions_sha256 of a delivery claim, which every verdict on the claim contains, offline.

  agent-payment-trust-verifier conditions <file | URL | -> [--verdict <file | URL | ->]

The source is the claim as submitted: JSON with category and conditions; other members are ignored. With --verdict, the hash is
compared with the one in the verdict. To check the verdict's own signature, use the document command.

Exit codes: 0 computed, or the same as in the verdict; 1 the verdict names a different hash; 2 usage error or unreadable input.`;

/**
 * The subcommand `conditions`.
 * @throws InputError for wrong usage, or for a source that cannot be read or is not a claim or a verdict
 */
export async function checkConditions(args: readonly string[]): Promise<0 | 1> {
  const { source, verdict } = readArguments(args, USAGE, { verdict: TEXT });
  if (source === "-" && verdict === "-") throw new InputError(`Only one of the two can be standard input.\n\n${USAGE}`);
  const computed = claimSha256(await readSource(source));
  const stated = verdict === undefined ? undefined : statedSha256(await readSource(verdict));
  console.log(computed);
  if (stated === undefined) return 0;
  const same = stated === computed;
  console.log(
    same
      ? "same: the verdict is about these conditions"
      : `DIFFERS: the verdict names ${quote(stated)}, so it is about different conditions`,
  );
  console.log("  The verdict's own signature is not checked here; use agent-payment-trust-verifier document.");
  return same ? 0 : 1;
}

/**
 * Returns the SHA-256 of the RFC 8785 form of a claim's `{category, conditions}`, in lowercase hex. A claim is not
 * signed: its numbers may be any that JSON can express, and are read as doubles.
 * @throws InputError if the source is not a claim
 */
export function claimSha256(source: string | Uint8Array): string {
  const claim = parseInput(
    () => parseUnsignedJson(source),
    (reason) => `The claim is not valid: ${reason}`,
  );
  if (!isObject(claim) || typeof claim.category !== "string" || !isObject(claim.conditions))
    throw new InputError("The claim is not valid: expected category, a string, and conditions, an object.");
  const { category, conditions } = claim;
  return createHash("sha256").update(jcs({ category, conditions })).digest("hex");
}

function statedSha256(source: Uint8Array): string {
  const document = parseInput(
    () => parseStrictJson(source),
    (reason) => `The verdict is not valid: ${reason}`,
  );
  const stated = isObject(document) ? document.conditions_sha256 : undefined;
  if (typeof stated !== "string") throw new InputError("The verdict is not valid: conditions_sha256 is missing.");
  return stated;
}
