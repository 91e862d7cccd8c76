import { z } from "zod";
import type { CheckRun, Reading } from "../../evidence.ts";
import type { Fact } from "../../facts.ts";
import { type Category, category, type JudgedCondition, printable, readingsOf } from "../category.ts";
import { conditionsOf } from "../conditions.ts";
import { GOOD_CONCLUSIONS_V1 } from "./tables.ts";

export interface Conditions {
  readonly repo: string;
  readonly commitSha: string;
}

/** GitHub's rules for account and repository names. */
const REPO = /^[a-z\d](?:[a-z\d]|-(?=[a-z\d])){0,38}\/(?!\.{1,2}$)[\w.-]{1,100}$/i;
const COMMIT = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/i;

/** Both versions accept the same claims. */
export const commitConditions = conditionsOf({
  repo: z.string().regex(REPO, "expected owner/name"),
  commit_sha: z.string().regex(COMMIT, "expected the full commit hash: 40 or 64 hex digits"),
}).transform(({ repo, commit_sha }): Conditions => ({ repo, commitSha: commit_sha.toLowerCase() }));

const isBad = ({ status, conclusion }: CheckRun): boolean =>
  status === "completed" && conclusion !== null && !GOOD_CONCLUSIONS_V1.includes(conclusion);

const isOpen = ({ status, conclusion }: CheckRun): boolean => status !== "completed" || conclusion === null;

/** Applies the rows of the policy's table for `check_runs`, in order. */
function resultOf(
  reading: Reading<CheckRun> | undefined,
  commitSha: string,
): Pick<JudgedCondition, "result" | "reason"> {
  if (reading === undefined) return { result: "unknown", reason: "unavailable" };
  if (reading.outcome !== "read") return { result: "unknown", reason: reading.outcome };
  const { items: runs, partial } = reading;
  if (runs.some(({ headSha }) => headSha !== commitSha)) return { result: "unknown", reason: "other_commit" };
  if (runs.some(isBad)) return { result: "false", reason: "bad_conclusion" };
  if (runs.some(isOpen)) return { result: "unknown", reason: "pending" };
  if (partial) return { result: "unknown", reason: "partial" };
  if (runs.length === 0) return { result: "unknown", reason: "no_runs" };
  return { result: "true", reason: "all_good" };
}

/** Returns the observed conclusions, in short. */
function observed(reading: Reading<CheckRun> | undefined): string | null {
  if (reading?.outcome !== "read") return null;
  const conclusions = new Set(reading.items.map(({ status, conclusion }) => conclusion ?? status));
  return conclusions.size === 0
    ? null
    : [...conclusions]
        .sort()
        .map((one) => printable(one, 40))
        .join(", ");
}

const byId = (one: CheckRun, other: CheckRun): number => one.id - other.id;

function factsOf({ repo, commitSha }: Conditions, reading: Reading<CheckRun>): readonly Fact[] {
  const about = { repo, commit_sha: commitSha };
  if (reading.outcome !== "read") return [{ fact: "check_runs", ...about, outcome: reading.outcome }];
  const { items: runs, partial } = reading;
  return [
    { fact: "check_runs", ...about, outcome: "read", complete: !partial, count: runs.length },
    ...[...runs].sort(byId).map(({ id, name, status, conclusion, headSha }) => ({
      fact: "check_run" as const,
      id,
      name: printable(name, 120),
      status: printable(status, 40),
      conclusion: conclusion === null ? null : printable(conclusion, 40),
      head_sha: printable(headSha, 64),
    })),
  ];
}

const CI_STATUS: Category<Conditions> = {
  name: "ci-status",
  conditions: () => commitConditions,
  next: (commit, seen) => (seen.length === 0 ? { type: "check-runs", commit } : null),
  judge({ commitSha }, seen) {
    const reading = readingsOf(seen).at(-1);
    const expected = GOOD_CONCLUSIONS_V1.join(", ");
    return [{ condition: "check_runs", expected, observed: observed(reading), ...resultOf(reading, commitSha) }];
  },
  facts: (commit, seen) => readingsOf(seen).flatMap((reading) => factsOf(commit, reading)),
};

export const ciStatus = category(CI_STATUS);
