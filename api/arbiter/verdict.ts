import type { Result, Verdict } from "./policy/policy.ts";

/** One condition, judged. `reason` says in one stable word why. */
export interface Finding {
  readonly condition: string;
  readonly expected: string | number;
  /** Null when nothing was observed that it could be compared with. */
  readonly observed: string | number | boolean | null;
  readonly result: Result;
  readonly reason: string;
}

/** All true is release, any false is refund, and anything else escalates: policy, `decision`. */
export function decide(results: readonly Result[]): Verdict {
  if (results.includes("false")) return "refund";
  return results.length > 0 && results.every((result) => result === "true") ? "release" : "escalate";
}
