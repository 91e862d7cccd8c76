import type { CheckResult } from "./vocabulary.ts";

/** What a seller is certified as; null where a check failed or too little was seen. */
export type Level = "full" | "safe" | null;

/** Checks about the buyer's money: no level without them. */
const MONEY = ["terms", "purchase", "replay", "forgery", "lost_answer"] as const;

/**
 * The level of an exam. `full`: every check passed, or does not apply. `safe`: every check about the buyer's money
 * passed, and another one failed. Null otherwise.
 */
export function levelOf(results: readonly CheckResult[]): Level {
  const passed = (name: string) => results.some(({ check, outcome }) => check === name && outcome === "pass");
  if (!MONEY.every(passed)) return null;
  return results.every(({ outcome }) => outcome !== "fail") ? "full" : "safe";
}
