import type { CheckRun, CheckSuite, CommitStatus, Listed, Reading } from "../../evidence.ts";
import type { Fact } from "../../facts.ts";
import {
  type Category,
  category,
  type JudgedCondition,
  type Observation,
  printable,
  type Question,
} from "../category.ts";
import type { PolicyCategory } from "../policy.ts";
import { type Conditions, commitConditions } from "../v1/ci-status.ts";
import { CI_STATUS_V1, GOOD_CONCLUSIONS_V1 } from "../v1/tables.ts";

/** Conclusions of a failed check. */
const BAD_CONCLUSIONS_V2: readonly string[] = ["failure", "timed_out", "startup_failure"];

/** Conclusions of a run that ended without a result. */
const ENDED_CONCLUSIONS_V2: readonly string[] = ["cancelled", "stale"];

/** The slug of the app under which GitHub's own workflows report. */
const WORKFLOWS_APP = "github-actions";

export const CI_STATUS_V2: PolicyCategory = {
  name: "ci-status",
  summary:
    "The arbiter reads GitHub's public check-runs of one commit, all pages. Of each check, which is a name reported by an app or, for GitHub Actions, by one of its workflows, the newest run counts; runs for a push to a fork do not. Commit statuses can hold a release back, but do not refund: anybody who may push can set one.",
  conditions: CI_STATUS_V1.conditions,
  table: [
    {
      condition: "check_runs",
      observed: `The newest run of every check is completed, with one of ${GOOD_CONCLUSIONS_V1.join(", ")}.`,
      result: "true",
    },
    {
      condition: "check_runs",
      observed: `The newest run of a check is completed with one of ${BAD_CONCLUSIONS_V2.join(", ")}, whatever the others have.`,
      result: "false",
    },
    { condition: "check_runs", observed: "No bad conclusion, and a newest run is not completed.", result: "unknown" },
    {
      condition: "check_runs",
      observed: `No bad conclusion, and a newest run has the conclusion ${ENDED_CONCLUSIONS_V2.join(" or ")} (reason cancelled), or another one that is not good, as action_required (reason no_result).`,
      result: "unknown",
    },
    {
      condition: "check_runs",
      observed:
        "There is no run that counts. A run does not count if there is a newer one of the same check, or if its suite is for a fork: GitHub names another head repository for the workflow, or, for another app's suite, no head branch or only pull requests from elsewhere.",
      result: "unknown",
    },
    {
      condition: "check_runs",
      observed: "GitHub does not show the app or the suite of a run, or the workflow behind it.",
      result: "unknown",
    },
    { condition: "check_runs", observed: "A run belongs to another commit.", result: "unknown" },
    {
      condition: "check_runs",
      observed:
        "Not every run or suite was shown, or the list is not one list: the pages differ in total_count, show an item twice, or differ when they are read again.",
      result: "unknown",
    },
    {
      condition: "check_runs, commit_statuses",
      observed:
        "Repository or commit not found (404, 422), rate limit, no access, no answer, or an unusable one, for any of the lists.",
      result: "unknown",
    },
    {
      condition: "commit_statuses",
      observed: "The commit has no status, or the newest of every context is success.",
      result: "true",
    },
    {
      condition: "commit_statuses",
      observed:
        "The newest of a context is pending, failure, or error; the list is not complete or not one list; or check_runs is not true, so that the statuses are not read.",
      result: "unknown",
    },
  ],
};

type Judged = Pick<JudgedCondition, "result" | "reason" | "observed">;

/** The readings. Each is undefined until it has been requested. */
interface Readings {
  readonly runs: Reading<CheckRun> | undefined;
  readonly suites: Reading<CheckSuite> | undefined;
  readonly statuses: Reading<CommitStatus> | undefined;
}

const readingsOf = (seen: readonly Observation[]): Readings => ({
  runs: seen.find((one) => one.type === "check-runs")?.reading,
  suites: seen.find((one) => one.type === "check-suites")?.reading,
  statuses: seen.find((one) => one.type === "commit-statuses")?.reading,
});

type Origin = "own" | "fork" | "unclear";

const isWorkflows = ({ app }: CheckRun): boolean => app?.slug === WORKFLOWS_APP;

/** Returns where a suite's commit was pushed. GitHub names the head repository only for its own workflows. */
function originOf({ headBranch, workflow, pullRequests }: CheckSuite): Origin {
  if (workflow !== null) return workflow.head?.id === workflow.repository.id ? "own" : "fork";
  const isElsewhere = pullRequests.length > 0 && pullRequests.every(({ head, base }) => head !== base);
  return headBranch === null || isElsewhere ? "fork" : "own";
}

const suitesIn = (reading: Reading<CheckSuite> | undefined): readonly CheckSuite[] =>
  reading?.outcome === "read" ? reading.items : [];

type SuitesById = ReadonlyMap<number, readonly CheckSuite[]>;

/** A workflow's suite is identified only by its workflow run, because its head branch may be a fork's. */
function suiteOf(run: CheckRun, suites: SuitesById): CheckSuite | null {
  const own = (run.suite === null ? null : suites.get(run.suite)) ?? [];
  return (isWorkflows(run) ? own.find(({ workflow }) => workflow !== null) : own[0]) ?? null;
}

/**
 * Returns a run, where its commit was pushed, and the check it belongs to, because two workflows may give their jobs
 * the same name.
 */
function place(run: CheckRun, suites: SuitesById) {
  const suite = suiteOf(run, suites);
  const origin: Origin = suite === null || run.app === null ? "unclear" : originOf(suite);
  return { run, origin, check: JSON.stringify([run.app?.id, suite?.workflow?.id, run.name]) };
}

type Why = "newest" | "superseded" | "fork" | "origin_unclear";

interface Considered {
  readonly run: CheckRun;
  readonly why: Why;
}

/** Returns every run and why it counts or not, by ID. GitHub assigns IDs in order of creation. */
function considered(runs: readonly CheckRun[], suites: readonly CheckSuite[]): readonly Considered[] {
  const byId = Map.groupBy(suites, ({ id }) => id);
  const placed = runs.map((run) => place(run, byId));
  const own = placed.filter(({ origin }) => origin === "own");
  const newest = new Map<string, number>();
  for (const { run, check } of own) newest.set(check, Math.max(run.id, newest.get(check) ?? 0));
  return placed
    .map(({ run, origin, check }): Considered => {
      if (origin !== "own") return { run, why: origin === "fork" ? "fork" : "origin_unclear" };
      return { run, why: newest.get(check) === run.id ? "newest" : "superseded" };
    })
    .toSorted((one, other) => one.run.id - other.run.id);
}

const consideredIn = ({ runs, suites }: Readings): readonly Considered[] =>
  runs?.outcome === "read" ? considered(runs.items, suitesIn(suites)) : [];

const stateOf = ({ status, conclusion }: CheckRun): string =>
  status === "completed" && conclusion !== null ? conclusion : "open";

/** Returns why a list decides nothing, or null if all of it was read. */
const listFault = (reading: Listed | { readonly outcome: string } | undefined): string | null => {
  if (reading === undefined) return "unavailable";
  if (!("partial" in reading)) return reading.outcome;
  if (reading.changed) return "inconsistent";
  return reading.partial ? "partial" : null;
};

/** Applies the rows of the policy's table for `check_runs`, in order. */
function judgeRuns(readings: Readings, commitSha: string): Judged {
  const { runs, suites } = readings;
  const unknown = (reason: string, observed: string | null = null): Judged => ({ result: "unknown", reason, observed });
  const fault = listFault(runs);
  if (runs?.outcome !== "read" || fault !== null) return unknown(fault ?? "unavailable");
  if (runs.items.some(({ headSha }) => headSha !== commitSha)) return unknown("other_commit");
  if (runs.items.length === 0) return unknown("no_runs");
  const suitesFault = listFault(suites);
  if (suitesFault !== null) return unknown(suitesFault);
  const all = consideredIn(readings);
  if (all.some(({ why }) => why === "origin_unclear")) return unknown("origin_unclear");
  const states = [...new Set(all.filter(({ why }) => why === "newest").map(({ run }) => stateOf(run)))].sort();
  const observed = states.length === 0 ? null : states.map((one) => printable(one, 40)).join(", ");
  const isGood = (state: string) => GOOD_CONCLUSIONS_V1.includes(state);
  if (states.some((state) => BAD_CONCLUSIONS_V2.includes(state)))
    return { result: "false", reason: "bad_conclusion", observed };
  if (states.includes("open")) return unknown("pending", observed);
  const others = states.filter((state) => !isGood(state));
  if (others.length > 0)
    return unknown(others.every((state) => ENDED_CONCLUSIONS_V2.includes(state)) ? "cancelled" : "no_result", observed);
  if (states.length === 0) return unknown("no_runs");
  return { result: "true", reason: "all_good", observed };
}

/** Applies the rows for `commit_statuses`. */
function judgeStatuses(statuses: Reading<CommitStatus> | undefined): Judged {
  if (statuses === undefined) return { result: "unknown", reason: "not_read", observed: null };
  const fault = listFault(statuses);
  if (statuses.outcome !== "read" || fault !== null)
    return { result: "unknown", reason: fault ?? "unavailable", observed: null };
  const states = [...new Set(statuses.items.map(({ state }) => state))].sort();
  const observed = states.length === 0 ? null : states.map((one) => printable(one, 40)).join(", ");
  const isGood = states.every((state) => state === "success");
  return isGood
    ? { result: "true", reason: states.length === 0 ? "none" : "all_good", observed }
    : { result: "unknown", reason: "not_success", observed };
}

/** Requests suites, and then statuses, only if they can change the result. */
function next(commit: Conditions, seen: readonly Observation[]): Question | null {
  const readings = readingsOf(seen);
  const { runs, suites, statuses } = readings;
  if (runs === undefined) return { type: "check-runs", commit };
  const canDecide = runs.outcome === "read" && runs.items.length > 0 && listFault(runs) === null;
  if (!canDecide) return null;
  if (suites === undefined) {
    const of = { workflows: runs.items.some(isWorkflows), apps: !runs.items.every(isWorkflows) };
    return { type: "check-suites", commit, of };
  }
  const isGood = judgeRuns(readings, commit.commitSha).result === "true";
  return isGood && statuses === undefined ? { type: "commit-statuses", commit } : null;
}

const listMembers = (reading: Reading<unknown>, count: number) =>
  "partial" in reading
    ? { outcome: "read" as const, complete: !reading.partial, consistent: !reading.changed, count }
    : { outcome: reading.outcome };

function runFacts(readings: Readings): readonly Fact[] {
  return consideredIn(readings).map(({ run, why }) => ({
    fact: "check_run",
    id: run.id,
    name: printable(run.name, 120),
    status: printable(run.status, 40),
    conclusion: run.conclusion === null ? null : printable(run.conclusion, 40),
    head_sha: printable(run.headSha, 64),
    app: run.app === null ? null : printable(run.app.slug, 100),
    suite: run.suite,
    counts: why === "newest",
    why,
  }));
}

function suiteFacts({ runs, suites }: Readings): readonly Fact[] {
  if (suites === undefined) return [];
  const all = suitesIn(suites);
  const byId = Map.groupBy(all, ({ id }) => id);
  const named = runs?.outcome === "read" ? runs.items.flatMap((run) => suiteOf(run, byId) ?? []) : [];
  const shown = [...new Set(named)].toSorted((one, other) => one.id - other.id);
  return [
    { fact: "check_suites", ...listMembers(suites, all.length) },
    ...shown.map((suite) => ({
      fact: "check_suite" as const,
      id: suite.id,
      head_branch: suite.headBranch === null ? null : printable(suite.headBranch, 120),
      head_repository: suite.workflow?.head ? printable(suite.workflow.head.name, 140) : null,
      origin: originOf(suite),
    })),
  ];
}

function statusFacts(statuses: Reading<CommitStatus> | undefined): readonly Fact[] {
  if (statuses === undefined) return [{ fact: "commit_statuses", outcome: "not_read" }];
  const all = statuses.outcome === "read" ? statuses.items : [];
  return [
    { fact: "commit_statuses", ...listMembers(statuses, all.length) },
    ...all
      .toSorted((one, other) => one.id - other.id)
      .map(({ id, context, state }) => ({
        fact: "commit_status" as const,
        id,
        context: printable(context, 120),
        state: printable(state, 40),
      })),
  ];
}

function facts({ repo, commitSha }: Conditions, seen: readonly Observation[]): readonly Fact[] {
  const readings = readingsOf(seen);
  const { runs } = readings;
  if (runs === undefined) return [];
  const count = runs.outcome === "read" ? runs.items.length : 0;
  return [
    { fact: "check_runs", repo, commit_sha: commitSha, ...listMembers(runs, count) },
    ...runFacts(readings),
    ...suiteFacts(readings),
    ...statusFacts(readings.statuses),
  ];
}

const CI_STATUS: Category<Conditions> = {
  name: "ci-status",
  conditions: () => commitConditions,
  next,
  judge({ commitSha }, seen) {
    const readings = readingsOf(seen);
    return [
      { condition: "check_runs", expected: GOOD_CONCLUSIONS_V1.join(", "), ...judgeRuns(readings, commitSha) },
      { condition: "commit_statuses", expected: "success", ...judgeStatuses(readings.statuses) },
    ];
  },
  facts,
};

export const ciStatusV2 = category(CI_STATUS);
