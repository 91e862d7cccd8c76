/** A check-run as GitHub reports it (https://docs.github.com/en/rest/checks/runs). */
export interface CheckRun {
  readonly id: number;
  readonly name: string;
  /** `completed`, or a state on the way to it. */
  readonly status: string;
  /** Null until completed. */
  readonly conclusion: string | null;
  /** The commit it ran on, in lower-case hex. */
  readonly headSha: string;
}

/** What an API reported about a commit; `partial` if it did not show every run that it counts. */
export type CheckRunsReading =
  | { readonly outcome: "read"; readonly runs: readonly CheckRun[]; readonly partial: boolean }
  | { readonly outcome: "not_found" | "rate_limited" | "denied" | "unavailable" | "bad_response" };

export interface CheckRuns {
  /**
   * The newest run of every check of a commit, across all pages.
   * @param repo `owner/name`
   * @param commitSha the full hash, lower-case hex
   */
  read(commit: { readonly repo: string; readonly commitSha: string }, signal: AbortSignal): Promise<CheckRunsReading>;
}
