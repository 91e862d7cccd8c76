import type { ConditionResult, Verdict } from "../policy.ts";

/** Decides release if all are true, refund if any is false, and escalate otherwise (policy, `decision`). */
export function decide(results: readonly ConditionResult[]): Verdict {
  if (results.includes("false")) return "refund";
  return results.length > 0 && results.every((result) => result === "true") ? "release" : "escalate";
}
