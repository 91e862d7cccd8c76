import { listedKey } from "../../packages/verifier/src/offer-receipt/did-document.ts";
import { InputError } from "../../packages/verifier/src/refusal.ts";
import type { OfferBreachClaim } from "../../packages/verifier/src/verdict/v2/evidence.ts";
import { checkSignatures, didDocumentUrl, type FoundKey } from "../../packages/verifier/src/verdict/v2/signatures.ts";
import type { Fetched, Fetcher, FetchLimits } from "../platform/web/guarded-fetch/request.ts";
import type { Claim } from "./claim.ts";
import type { CheckRuns, Evidence, Transactions } from "./evidence.ts";
import type { Fact } from "./facts.ts";
import type { Observation, Question, SignaturesReading } from "./policy/category.ts";
import { type PolicyVersions, type Rules, rulesFor } from "./policy/version.ts";

/** Attempts to fetch a DID document. */
const ATTEMPTS = 2;

/**
 * Checks who signed. The key of a JWS comes from a DID document on the resource's own host, read through the guarded
 * fetch and without redirects, because a document on another host does not speak for this one.
 */
async function readSignatures(
  fetcher: Fetcher,
  { claim, limits }: { readonly claim: OfferBreachClaim; readonly limits: FetchLimits },
  signal: AbortSignal,
): Promise<SignaturesReading> {
  const url = didDocumentUrl(claim);
  const fetched = url === null ? null : await fetchDocument(fetcher, { url, limits }, signal);
  const content = fetched?.body?.decoded?.content;
  const signatures = await checkSignatures(claim, (kid) => keyIn(content, kid));
  if (url === null || fetched === null) return { document: null, signatures };
  const { body, ...how } = fetched;
  return { document: { url, fetched: how, sha256: body?.decoded?.sha256 ?? null }, signatures };
}

async function fetchDocument(
  fetcher: Fetcher,
  { url, limits }: { readonly url: string; readonly limits: FetchLimits },
  signal: AbortSignal,
): Promise<Fetched> {
  const request = { url, expectStatus: 200, contains: null, keep: true, limits } as const;
  let fetched = await fetcher.attempt(request, signal);
  for (let tries = 1; tries < ATTEMPTS && fetched.body === null && (fetched.head?.status ?? 500) >= 500; tries++)
    fetched = await fetcher.attempt(request, signal);
  return fetched;
}

function keyIn(document: Uint8Array | undefined, kid: string): FoundKey {
  if (document === undefined) return "no_document";
  try {
    return listedKey(document, kid) ?? "not_listed";
  } catch (error) {
    if (error instanceof InputError) return "no_document";
    throw error;
  }
}

export interface EvidenceParts {
  readonly fetcher: Fetcher;
  readonly checkRuns: CheckRuns;
  readonly transactions: Transactions;
  readonly policies: PolicyVersions;
  readonly now: () => Date;
  /** Resolves after a delay; rejects if the signal aborts. */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

/**
 * Gathers the evidence that the claim's category needs and judges it under the policy version that accepted the claim.
 * Rejects with `Busy`, or if the signal aborts.
 */
export async function gatherEvidence(parts: EvidenceParts, claim: Claim, signal: AbortSignal): Promise<Evidence> {
  const rules = rulesFor(parts.policies, { version: claim.policyVersion, category: claim.category });
  const seen: Observation[] = [];
  const timeline: Evidence["timeline"][number][] = [];
  for (;;) {
    const question = rules.category.next(claim.conditions, seen);
    if (question === null) break;
    if (question.type === "fetch" && question.afterMs !== undefined) await parts.wait(question.afterMs, signal);
    const started = parts.now();
    seen.push(await look(parts, question, signal));
    timeline.push({
      source: question.type,
      started_at: started.toISOString(),
      finished_at: parts.now().toISOString(),
    });
  }
  const transfer = rules.category.decides?.(claim.conditions, seen) ?? null;
  return {
    ...judged(rules, claim, seen),
    timeline,
    ...(transfer && {
      transfer: {
        ...transfer,
        decidedBefore: (verdict) => ({
          ...judged(rules, claim, [...seen, { type: "decided-before", verdict }]),
          timeline,
        }),
      },
    }),
  };
}

/** Returns the verdict and the facts for these observations. */
function judged({ version, category }: Rules, { conditions }: Claim, seen: readonly Observation[]) {
  const found = category.judge(conditions, seen);
  return {
    verdict: version.decide(found.map(({ result }) => result)),
    facts: [...category.facts(conditions, seen), ...found.map((one): Fact => ({ fact: "condition", ...one }))],
  };
}

async function look(
  { fetcher, checkRuns, transactions }: EvidenceParts,
  question: Question,
  signal: AbortSignal,
): Promise<Observation> {
  switch (question.type) {
    case "fetch":
      return { type: "fetch", fetched: await fetcher.attempt(question.request, signal) };
    case "check-runs":
      return { type: "check-runs", reading: await checkRuns.read(question.commit, signal) };
    case "check-suites":
      return { type: "check-suites", reading: await checkRuns.suites(question.commit, question.of, signal) };
    case "commit-statuses":
      return { type: "commit-statuses", reading: await checkRuns.statuses(question.commit, signal) };
    case "signatures":
      return { type: "signatures", reading: await readSignatures(fetcher, question, signal) };
    case "transaction":
      return { type: "transaction", asked: question.asked, reading: await transactions.read(question.asked) };
    default:
      return question satisfies never;
  }
}
