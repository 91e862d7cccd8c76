import type { z } from "zod";
import type { CheckRunsReading } from "../check-runs.ts";
import type { Fetched, FetchRequest } from "../fetcher.ts";
import type { GuardSettings } from "../guard/target.ts";
import type { ConditionResult } from "./policy.ts";

/** What is to be looked at next. */
export type Question =
  | { readonly source: "fetch"; readonly request: FetchRequest }
  | { readonly source: "check-runs"; readonly commit: { readonly repo: string; readonly commitSha: string } };

/** What a question brought. */
export type Observation =
  | { readonly source: "fetch"; readonly fetched: Fetched }
  | { readonly source: "check-runs"; readonly reading: CheckRunsReading };

/** An item of a verdict's `facts`, as it is published: JSON whose numbers are safe integers. No time is in it. */
export type Fact = Readonly<Record<string, unknown>>;

/** One condition, judged. `reason` says in one stable word why. */
export interface JudgedCondition {
  readonly condition: string;
  readonly expected: string | number;
  /** Null when nothing was observed that it could be compared with. */
  readonly observed: string | number | boolean | null;
  readonly result: ConditionResult;
  readonly reason: string;
}

/**
 * A kind of claim. Everything is pure: the rules for its conditions, what to look at, and the judgement of what was seen. The
 * parsed conditions are JSON, so that a claim can be stored, and hold no payload.
 */
export interface Category<Conditions = unknown> {
  readonly name: string;
  /** A custom issue is a refusal (422), and its `params.rule` the policy's rule; any other is a malformed claim (400). */
  readonly conditions: (settings: GuardSettings) => z.ZodType<Conditions>;
  /** What to look at after what has been seen so far; null when that is enough. */
  readonly next: (conditions: Conditions, seen: readonly Observation[]) => Question | null;
  readonly judge: (conditions: Conditions, seen: readonly Observation[]) => readonly JudgedCondition[];
  readonly facts: (conditions: Conditions, seen: readonly Observation[]) => readonly Fact[];
}

/** Keeps the type while a category is written and forgets it in the list: conditions go only to the category that parsed them. */
export const category = <Conditions>(one: Category<Conditions>): Category => one as unknown as Category;

export const fetchesOf = (seen: readonly Observation[]): readonly Fetched[] =>
  seen.flatMap((one) => (one.source === "fetch" ? [one.fetched] : []));

export const readingsOf = (seen: readonly Observation[]): readonly CheckRunsReading[] =>
  seen.flatMap((one) => (one.source === "check-runs" ? [one.reading] : []));

/** Text of strangers as it is published: printable ASCII, cut at a length. */
export const printable = (text: string, limit: number): string => text.slice(0, limit).replace(/[^\x20-\x7e]/g, "?");
