import type { CheckRuns } from "./check-runs.ts";
import type { Claim } from "./claim.ts";
import type { Evidence } from "./evidence.ts";
import type { Fetcher } from "./fetcher.ts";
import type { Fact, Observation, Question } from "./policy/category.ts";
import { type PolicyVersions, type Rules, rulesFor } from "./policy/version.ts";
import { readSignatures } from "./signatures.ts";
import type { Transactions } from "./transactions.ts";

export interface EvidenceParts {
  readonly fetcher: Fetcher;
  readonly checkRuns: CheckRuns;
  readonly transactions: Transactions;
  readonly policies: PolicyVersions;
  readonly now: () => Date;
  /** Resolves after a time; rejects if the signal aborts. */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

/**
 * Looks at whatever the claim's category asks for and judges it, by the policy version the claim was accepted under.
 * Rejects with `Busy`, and if the signal aborts.
 */
export async function gatherEvidence(parts: EvidenceParts, claim: Claim, signal: AbortSignal): Promise<Evidence> {
  const rules = rulesFor(parts.policies, { version: claim.policyVersion, category: claim.category });
  const seen: Observation[] = [];
  const timeline: Evidence["timeline"][number][] = [];
  for (;;) {
    const question = rules.category.next(claim.conditions, seen);
    if (question === null) break;
    if (question.source === "fetch" && question.afterMs !== undefined) await parts.wait(question.afterMs, signal);
    const started = parts.now();
    seen.push(await look(parts, question, signal));
    timeline.push({
      source: question.source,
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
          ...judged(rules, claim, [...seen, { source: "decided-before", verdict }]),
          timeline,
        }),
      },
    }),
  };
}

/** What follows from what was seen. */
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
  switch (question.source) {
    case "fetch":
      return { source: "fetch", fetched: await fetcher.attempt(question.request, signal) };
    case "check-runs":
      return { source: "check-runs", reading: await checkRuns.read(question.commit, signal) };
    case "check-suites":
      return { source: "check-suites", reading: await checkRuns.suites(question.commit, question.of, signal) };
    case "commit-statuses":
      return { source: "commit-statuses", reading: await checkRuns.statuses(question.commit, signal) };
    case "signatures":
      return { source: "signatures", reading: await readSignatures(fetcher, question, signal) };
    case "transaction":
      return { source: "transaction", asked: question.asked, reading: await transactions.read(question.asked) };
    default:
      return question satisfies never;
  }
}
