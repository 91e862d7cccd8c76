import type { CheckRuns } from "./check-runs.ts";
import { type Claim, categoryNamed } from "./claim.ts";
import type { Evidence } from "./evidence.ts";
import type { Fetcher } from "./fetcher.ts";
import type { Category, Fact, Observation, Question } from "./policy/category.ts";
import { decide } from "./policy/v1/decide.ts";

export interface EvidenceParts {
  readonly fetcher: Fetcher;
  readonly checkRuns: CheckRuns;
  readonly now: () => Date;
}

/** Looks at whatever the claim's category asks for, and judges it. Rejects with `Busy`, and when the signal aborts. */
export async function gatherEvidence(parts: EvidenceParts, claim: Claim, signal: AbortSignal): Promise<Evidence> {
  const category = categoryNamed(claim.category);
  if (category === null) throw new Error(`no such category: ${claim.category}`);
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
  return { ...conclude(category, claim.conditions, seen), timeline };
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

function conclude(category: Category, conditions: unknown, seen: readonly Observation[]) {
  const judged = category.judge(conditions, seen);
  return {
    verdict: decide(judged.map(({ result }) => result)),
    facts: [...category.facts(conditions, seen), ...judged.map((one): Fact => ({ fact: "condition", ...one }))],
  };
}
