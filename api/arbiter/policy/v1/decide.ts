import type { ConditionResult, Verdict } from "../policy.ts";

/** All true is release, any false is refund, and anything else escalates: policy, `decision`. */
export function decide(results: readonly ConditionResult[]): Verdict {
  if (results.includes("false")) return "refund";
  return results.length > 0 && results.every((result) => result === "true") ? "release" : "escalate";
}
