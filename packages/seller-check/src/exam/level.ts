import type { CheckName, CheckResult } from "./vocabulary.ts";

/** The level that a seller is certified at; null if a check failed or too little was seen. */
export type Level = "full" | "safe" | null;

/**
 * The weight of each check: the lowest level that requires it. Unless every check of the weight `safe` passes, there is
 * no level; a failed check of the weight `full` leaves `safe`.
 */
export const CHECK_WEIGHTS: Readonly<Record<CheckName, NonNullable<Level>>> = {
  terms: "safe",
  purchase: "safe",
  replay: "safe",
  binding: "full",
  forgery: "safe",
  lost_answer: "full",
  caching: "full",
  offer_receipt: "full",
};

/** The meaning of each level. */
export const LEVEL_MEANINGS = {
  full: "no check failed",
  safe: "every check of the weight safe passed: the buyer is charged as quoted, once, and nothing forged is settled; a check of the weight full failed",
  none: "a check of the weight safe did not pass",
} as const;

/**
 * Returns the level of an exam. `full`: every check passed, or does not apply. `safe`: every check of that weight
 * passed, and another one failed. Null otherwise.
 */
export function levelOf(results: readonly CheckResult[]): Level {
  const isLost = ({ check, outcome }: CheckResult) => CHECK_WEIGHTS[check] === "safe" && outcome !== "pass";
  if (results.some(isLost)) return null;
  return results.every(({ outcome }) => outcome !== "fail") ? "full" : "safe";
}
