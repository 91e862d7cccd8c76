import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { jcs } from "../jcs.ts";
import { InputError, parseInput, quote } from "../refusal.ts";
import { isObject, type Json, type JsonObject, parseStrictJson } from "../strict-json.ts";
import type { JudgedCondition, OfferBreachClaim, OfferBreachEvidence, Verdict } from "./v2/evidence.ts";
import { judgeOfferBreach } from "./v2/offer-breach.ts";
import { parseEvidence } from "./v2/parse-evidence.ts";
import { checkSignatures, type FoundKey } from "./v2/signatures.ts";

/** A verdict as stated, and the verdict that follows from its evidence. */
export interface VerdictReplay {
  /** Whether the verdict and all its conditions follow from its evidence. */
  readonly same: boolean;
  readonly stated: Verdict;
  readonly computed: Verdict;
  readonly conditions: readonly JudgedCondition[];
  /** The differences, one sentence each. */
  readonly differences: readonly string[];
}

const VERDICTS = ["release", "refund", "escalate"];

/**
 * Recomputes a verdict of the category `offer-breach` from its published evidence: the offer and the receipt, the key
 * that the seller's host listed, and the transfers. Signatures are checked again. Nothing is fetched: ask the host
 * whether it listed the key, and the chain whether the transaction is final.
 * @throws InputError if it is not such a verdict
 */
export async function replayVerdict(source: string | Uint8Array): Promise<VerdictReplay> {
  const document = readVerdict(source);
  const facts = (document.facts as readonly Json[]).filter(isObject);
  const evidence = parseEvidence(facts);
  const signatures = await checkSignatures(evidence, (_, of) => recordedKey(evidence, of));
  const { conditions, verdict } = judgeOfferBreach({ ...evidence, signatures });
  const stated = document.verdict as Verdict;
  const conditionsSha256 = hashOf(evidence);
  const differences = [
    ...(document.conditions_sha256 === conditionsSha256
      ? []
      : [`conditions_sha256 is ${quote(document.conditions_sha256)}, the claim's is ${conditionsSha256}`]),
    ...(stated === verdict ? [] : [`the verdict is ${stated}, the evidence gives ${verdict}`]),
    ...differencesOf(
      facts.filter(({ fact }) => fact === "condition"),
      conditions,
    ),
  ];
  return { same: differences.length === 0, stated, computed: verdict, conditions, differences };
}

/** Returns the listed key according to the verdict, or the reason why there was none. */
function recordedKey({ signatures }: OfferBreachEvidence, kind: "offer" | "receipt"): FoundKey {
  const found = signatures.find(({ of }) => of === kind);
  return found?.key ?? (found?.reason === "no_document" ? "no_document" : "not_listed");
}

/** Returns the SHA-256 of the RFC 8785 form of the category and the conditions as submitted, in lowercase hex. */
function hashOf({ offer, receipt, settlement }: OfferBreachClaim): string {
  const conditions = { offer, settlement: { ...settlement }, ...(receipt && { receipt }) };
  return bytesToHex(sha256(new TextEncoder().encode(jcs({ category: "offer-breach", conditions }))));
}

function readVerdict(source: string | Uint8Array): JsonObject {
  const document = parseInput(
    () => parseStrictJson(source),
    (reason) => `The verdict cannot be read: ${reason}.`,
  );
  if (!isObject(document) || document.type !== "ArbiterVerdict" || !Array.isArray(document.facts))
    throw new InputError("This is not a verdict: expected a document of the type ArbiterVerdict with its facts.");
  const { category, policy_version: version, verdict } = document;
  if (category !== "offer-breach" || version !== 2)
    throw new InputError(
      `The verdict is about ${quote(category)} by version ${quote(version)}; only offer-breach by version 2 can be recomputed from its evidence alone.`,
    );
  if (!VERDICTS.includes(String(verdict)))
    throw new InputError(`The verdict is ${quote(verdict)}; expected one of ${VERDICTS.join(", ")}.`);
  return document;
}

function differencesOf(stated: readonly JsonObject[], computed: readonly JudgedCondition[]): readonly string[] {
  const names = [...new Set([...stated, ...computed].map(({ condition }) => String(condition)))];
  return names.flatMap((name) => {
    const [one, other] = [stated, computed].map((all) => all.find(({ condition }) => condition === name));
    return describe(one) === describe(other)
      ? []
      : [`${quote(name)} is ${describe(one)}, the evidence gives ${describe(other)}`];
  });
}

const describe = (judged: JsonObject | JudgedCondition | undefined): string =>
  judged === undefined
    ? "missing"
    : [judged.result, judged.reason, judged.expected, judged.observed].map((value) => quote(value)).join(" ");
