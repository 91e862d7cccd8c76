/** A condition of a claim is true, false, or unknown. */
export type ConditionResult = "true" | "false" | "unknown";

export type Verdict = "release" | "refund" | "escalate";

/** One judged condition. `reason` is one stable word. */
export interface JudgedCondition {
  readonly condition: string;
  readonly expected: string | number;
  /** Null if nothing comparable was observed. */
  readonly observed: string | number | boolean | null;
  readonly result: ConditionResult;
  readonly reason: string;
}
