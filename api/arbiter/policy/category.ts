import type { z } from "zod";
import type { CheckRunsReading } from "../check-runs.ts";
import type { Fetched, FetchRequest } from "../fetcher.ts";
import type { GuardSettings } from "../guard/target.ts";
import type { ConditionResult } from "./policy.ts";

/** What to look at next. */
export type Question =
  | { readonly source: "fetch"; readonly request: FetchRequest }
  | { readonly source: "check-runs"; readonly commit: { readonly repo: string; readonly commitSha: string } };

/** What a question returned. */
export type Observation =
  | { readonly source: "fetch"; readonly fetched: Fetched }
  | { readonly source: "check-runs"; readonly reading: CheckRunsReading };

/** An item of a verdict's `facts`, as published: JSON whose numbers are safe integers, and which contains no time. */
export type Fact = Readonly<Record<string, unknown>>;

/** One judged condition. `reason` says why in one stable word. */
export interface JudgedCondition {
  readonly condition: string;
  readonly expected: string | number;
  /** Null if nothing comparable was observed. */
  readonly observed: string | number | boolean | null;
  readonly result: ConditionResult;
  readonly reason: string;
}

/**
 * A kind of claim. Everything is pure: the rules for its conditions, what to look at, and the judgment of what was
 * seen. Parsed conditions are JSON, so that a claim can be stored, and hold no payload.
 */
export interface Category<Conditions = unknown> {
  readonly name: string;
  /**
   * A custom issue is a refusal (422) whose `params.rule` is the policy's rule; any other is a malformed claim (400).
   */
  readonly conditions: (settings: GuardSettings) => z.ZodType<Conditions>;
  /** What to look at given what has been seen so far; null if that is enough. */
  readonly next: (conditions: Conditions, seen: readonly Observation[]) => Question | null;
  readonly judge: (conditions: Conditions, seen: readonly Observation[]) => readonly JudgedCondition[];
  readonly facts: (conditions: Conditions, seen: readonly Observation[]) => readonly Fact[];
}

/**
 * Checks a category against its own type, then erases the type for the list: conditions only reach the category that
 * parsed them.
 */
export const category = <Conditions>(one: Category<Conditions>): Category => one as unknown as Category;

export const fetchesOf = (seen: readonly Observation[]): readonly Fetched[] =>
  seen.flatMap((one) => (one.source === "fetch" ? [one.fetched] : []));

export const readingsOf = (seen: readonly Observation[]): readonly CheckRunsReading[] =>
  seen.flatMap((one) => (one.source === "check-runs" ? [one.reading] : []));

/** Text from strangers as published: printable ASCII, truncated. */
export const printable = (text: string, limit: number): string => text.slice(0, limit).replace(/[^\x20-\x7e]/g, "?");
