import type { CheckRuns } from "./check-runs.ts";
import { type Claim, policyVersionOf } from "./claim.ts";
import type { Evidence } from "./evidence.ts";
import type { Fetcher } from "./fetcher.ts";
import type { Category, Fact, Observation, Question } from "./policy/category.ts";
import { categoryNamed, type PolicyVersion, type PolicyVersions, versionNumbered } from "./policy/version.ts";

export interface EvidenceParts {
  readonly fetcher: Fetcher;
  readonly checkRuns: CheckRuns;
  readonly policies: PolicyVersions;
  readonly now: () => Date;
}

/**
 * Looks at whatever the claim's category asks for and judges it, by the policy version the claim was accepted under.
 * Rejects with `Busy`, and if the signal aborts.
 */
export async function gatherEvidence(parts: EvidenceParts, claim: Claim, signal: AbortSignal): Promise<Evidence> {
  const { version, category } = rulesFor(claim, parts.policies);
  const seen: Observation[] = [];
  const timeline: Evidence["timeline"][number][] = [];
  for (;;) {
    const question = category.next(claim.conditions, seen);
    if (question === null) break;
    const started = parts.now();
    seen.push(await look(parts, question, signal));
    timeline.push({
      source: question.source,
      started_at: started.toISOString(),
      finished_at: parts.now().toISOString(),
    });
  }
  const judged = category.judge(claim.conditions, seen);
  return {
    verdict: version.decide(judged.map(({ result }) => result)),
    facts: [...category.facts(claim.conditions, seen), ...judged.map((one): Fact => ({ fact: "condition", ...one }))],
    timeline,
  };
}

/** Both exist for every claim that this or an earlier release has accepted. */
function rulesFor(claim: Claim, policies: PolicyVersions): { version: PolicyVersion; category: Category } {
  const version = versionNumbered(policies, policyVersionOf(claim));
  const category = version && categoryNamed(version, claim.category);
  if (version === null || category === null)
    throw new Error(`no category ${claim.category} in policy version ${policyVersionOf(claim)}`);
  return { version, category };
}

async function look(
  { fetcher, checkRuns }: EvidenceParts,
  question: Question,
  signal: AbortSignal,
): Promise<Observation> {
  switch (question.source) {
    case "fetch":
      return { source: "fetch", fetched: await fetcher.attempt(question.request, signal) };
    case "check-runs":
      return { source: "check-runs", reading: await checkRuns.read(question.commit, signal) };
    default:
      return question satisfies never;
  }
}
