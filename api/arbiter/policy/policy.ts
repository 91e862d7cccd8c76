import type { CategoryName } from "../../../packages/verifier/src/vocabulary.ts";

/** The result of a condition. Each category's table of `DecisionRow` defines how it is decided. */
export type ConditionResult = "true" | "false" | "unknown";

export type Verdict = "release" | "refund" | "escalate";

export interface PolicyRule {
  /** Keeps its meaning in later versions, because refusals refer to rules by number. */
  readonly number: number;
  readonly title: string;
  readonly text: string;
}

export interface DecisionRow {
  readonly condition: string;
  readonly observed: string;
  readonly result: ConditionResult;
}

export interface PolicyCategory {
  readonly name: CategoryName;
  readonly summary: string;
  readonly conditions: readonly { readonly name: string; readonly required: boolean; readonly means: string }[];
  readonly table: readonly DecisionRow[];
}

/** A published policy. A version is never edited: a change makes a new version. */
export interface Policy {
  readonly version: number;
  /** The first day of the deals it applies to (UTC, ISO 8601). */
  readonly effective_date: string;
  readonly status: string;
  readonly role: string;
  readonly categories: readonly PolicyCategory[];
  readonly decision: readonly { readonly when: string; readonly verdict: Verdict }[];
  readonly rules: readonly PolicyRule[];
}
