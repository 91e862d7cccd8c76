import type { ConditionResult, Verdict } from "../policy.ts";

/** One condition, judged. `reason` says in one stable word why. */
export interface JudgedCondition {
  readonly condition: string;
  readonly expected: string | number;
  /** Null when nothing was observed that it could be compared with. */
  readonly observed: string | number | boolean | null;
  readonly result: ConditionResult;
  readonly reason: string;
}

/** All true is release, any false is refund, and anything else escalates: policy, `decision`. */
export function decide(results: readonly ConditionResult[]): Verdict {
  if (results.includes("false")) return "refund";
  return results.length > 0 && results.every((result) => result === "true") ? "release" : "escalate";
}
