import { z } from "zod";
import type { CheckRun, CheckRuns, CheckSuite, CommitStatus, Unreadable } from "./check-runs.ts";
import { createAgent, createList, type GithubOptions, type ListOf, NotRead } from "./github-lists.ts";
import { withDeadline } from "../platform/web/guarded-fetch/slots.ts";

export interface GithubChecksOptions extends GithubOptions {
  /** Covers all pages of one reading; set in tests. */
  readonly deadlineMs?: number;
}

const DEADLINE_MS = 20_000;

const id = z.number().int().nonnegative();

const RUN = z
  .object({
    id,
    name: z.string(),
    head_sha: z.string(),
    status: z.string(),
    conclusion: z.string().nullable(),
    app: z.object({ id, slug: z.string() }).nullish(),
    check_suite: z.object({ id }).nullish(),
  })
  .transform(
    ({ id, name, head_sha, status, conclusion, app, check_suite }): CheckRun => ({
      id,
      name,
      status,
      conclusion,
      headSha: head_sha.toLowerCase(),
      app: app ?? null,
      suite: check_suite?.id ?? null,
    }),
  );

const repository = z.object({ id, full_name: z.string() }).transform(({ id, full_name }) => ({ id, name: full_name }));
const headBranch = z.string().nullable();

const SUITE = z
  .object({
    id,
    head_branch: headBranch,
    pull_requests: z
      .array(
        z.object({
          head: z.object({ repo: z.object({ id }).nullish() }),
          base: z.object({ repo: z.object({ id }) }),
        }),
      )
      .nullish(),
  })
  .transform(
    ({ id, head_branch, pull_requests }): CheckSuite => ({
      id,
      headBranch: head_branch,
      workflow: null,
      pullRequests: (pull_requests ?? []).map(({ head, base }) => ({
        head: head.repo?.id ?? null,
        base: base.repo.id,
      })),
    }),
  );

/** A workflow run and the suite that it reports by. */
const WORKFLOW_RUN = z
  .object({
    id,
    check_suite_id: id,
    workflow_id: id.nullish(),
    head_branch: headBranch,
    repository,
    head_repository: repository.nullish(),
  })
  .transform(({ id, check_suite_id, workflow_id, head_branch, repository: own, head_repository }) => ({
    id,
    suite: {
      id: check_suite_id,
      headBranch: head_branch,
      workflow: { id: workflow_id ?? null, repository: own, head: head_repository ?? null },
      pullRequests: [],
    } satisfies CheckSuite,
  }));

const STATUS = z.object({ id, context: z.string(), state: z.string() }) satisfies z.ZodType<CommitStatus>;

const NONE: ListOf<never> = { outcome: "read", items: [], partial: false, changed: false };

/** What GitHub's REST API shows about a commit. */
export function createGithubChecks(options: GithubChecksOptions): CheckRuns {
  const github = { ...options, agent: createAgent() };
  const runs = createList(github, { key: "check_runs", item: RUN });
  const suites = createList(github, { key: "check_suites", item: SUITE });
  const workflowRuns = createList(github, { key: "workflow_runs", item: WORKFLOW_RUN });
  const statuses = createList(github, { key: "statuses", item: STATUS });
  const within = async <Reading>(signal: AbortSignal, read: (deadline: AbortSignal) => Promise<Reading>) => {
    try {
      return await withDeadline(options.deadlineMs ?? DEADLINE_MS, signal, read);
    } catch (cause) {
      signal.throwIfAborted();
      return { outcome: (cause instanceof NotRead ? cause.outcome : "unavailable") satisfies Unreadable };
    }
  };
  return {
    read: ({ repo, commitSha }, signal) =>
      within(signal, async (deadline) => {
        const { items, ...list } = await runs(`/repos/${repo}/commits/${commitSha}/check-runs?filter=latest`, deadline);
        return { ...list, runs: items };
      }),
    suites: ({ repo, commitSha }, of, signal) =>
      within(signal, async (deadline) => {
        const workflows = of.workflows
          ? await workflowRuns(`/repos/${repo}/actions/runs?head_sha=${commitSha}`, deadline)
          : NONE;
        const apps = of.apps ? await suites(`/repos/${repo}/commits/${commitSha}/check-suites`, deadline) : NONE;
        return {
          outcome: "read" as const,
          suites: [...workflows.items.map(({ suite }) => suite), ...apps.items],
          partial: workflows.partial || apps.partial,
          changed: workflows.changed || apps.changed,
        };
      }),
    statuses: ({ repo, commitSha }, signal) =>
      within(signal, async (deadline) => {
        const { items, ...list } = await statuses(`/repos/${repo}/commits/${commitSha}/status`, deadline);
        return { ...list, statuses: items };
      }),
  };
}
