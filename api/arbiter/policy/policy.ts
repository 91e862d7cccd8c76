import type { ConditionResult, Verdict } from "../../../packages/verifier/src/verdict/v2/evidence.ts";
import type { CategoryName } from "../../../packages/verifier/src/vocabulary.ts";

export type { ConditionResult, Verdict } from "../../../packages/verifier/src/verdict/v2/evidence.ts";

export interface PolicyRule {
  /** Keeps its meaning in later versions, because refusals refer to rules by number. */
  readonly number: number;
  readonly title: string;
  readonly text: string;
}

/** A row of a category's table, which defines how a condition is decided. */
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
