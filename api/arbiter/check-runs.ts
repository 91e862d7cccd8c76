/** A check-run as GitHub reports it (https://docs.github.com/en/rest/checks/runs). */
export interface CheckRun {
  readonly id: number;
  readonly name: string;
  /** `completed`, or a state on the way to it. */
  readonly status: string;
  /** Null until completed. */
  readonly conclusion: string | null;
  /** The commit that it ran on, in lower-case hex. */
  readonly headSha: string;
}

/** What an API said of a commit; `partial` when it did not show every run that it counts. */
export type CheckRunsReading =
  | { readonly outcome: "read"; readonly runs: readonly CheckRun[]; readonly partial: boolean }
  | { readonly outcome: "not_found" | "rate_limited" | "denied" | "unavailable" | "bad_response" };

export interface CheckRuns {
  /**
   * The newest run of every check of a commit, over all pages.
   * @param repo `owner/name`
   * @param commitSha the whole hash, lower-case hex
   */
  read(commit: { readonly repo: string; readonly commitSha: string }, signal: AbortSignal): Promise<CheckRunsReading>;
}
