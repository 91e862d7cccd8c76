import type { PolicyCategory } from "../policy.ts";
import { CI_STATUS_V1, GOOD_CONCLUSIONS_V1 } from "../v1/tables.ts";

/** Conclusions of a run that was ended before it had a result. */
export const ENDED_CONCLUSIONS_V2: readonly string[] = ["cancelled", "stale"];

/** The slug of the app that GitHub's own workflows report by. */
export const WORKFLOWS_APP = "github-actions";

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
      observed: `The newest run of a check is completed with any other conclusion but ${ENDED_CONCLUSIONS_V2.join(" and ")}, whatever the others have.`,
      result: "false",
    },
    { condition: "check_runs", observed: "No bad conclusion, and a newest run is not completed.", result: "unknown" },
    {
      condition: "check_runs",
      observed: `No bad conclusion, and a newest run has the conclusion ${ENDED_CONCLUSIONS_V2.join(" or ")}.`,
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
