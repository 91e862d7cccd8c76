import type { IncomingMessage, ServerResponse } from "node:http";
import { serveHttp } from "../http-server.ts";

export const SHA = "a".repeat(40);
/** An item of one of GitHub's lists. */
export type Item = Record<string, unknown>;

export const OWN = { id: 1, full_name: "octo/app" };
export const FORK = { id: 2, full_name: "mallory/app" };
const ACTIONS = { id: 15_368, slug: "github-actions" };
export const OTHER_APP = { id: 9, slug: "other-ci" };
/** The suite of runs without another one. */
const SUITE = 7;

/** A run of GitHub Actions in the repository itself, with these fields overridden. */
export const run = (id: number, conclusion: string | null, more: Item = {}): Item => ({
  id,
  name: `check ${id}`,
  head_sha: SHA,
  status: conclusion === null ? "in_progress" : "completed",
  conclusion,
  app: ACTIONS,
  check_suite: { id: SUITE },
  output: { text: "x" },
  ...more,
});

/** The workflow run behind a suite. */
export const workflowRun = (suite: number, more: Item = {}): Item => ({
  id: suite * 10,
  check_suite_id: suite,
  workflow_id: 3,
  head_branch: "main",
  repository: OWN,
  head_repository: OWN,
  ...more,
});

export const suite = (id: number, more: Item = {}): Item => ({ id, head_branch: "main", pull_requests: [], ...more });

export const status = (id: number, state: string, more: Item = {}): Item => ({
  id,
  context: `ci/${id}`,
  state,
  ...more,
});

type Intercept = (request: IncomingMessage, response: ServerResponse, url: URL) => boolean;

/** A stand-in for GitHub's REST API about one commit, with pages and ETags. */
export async function startGithub() {
  const lists = { runs: [] as Item[], workflowRuns: [] as Item[], suites: [] as Item[], statuses: [] as Item[] };
  const requests: { readonly url: URL; readonly headers: IncomingMessage["headers"]; status: number }[] = [];
  const state = { ...lists, answer: null as Intercept | null, requests };
  const listAt = (path: string): readonly [string, readonly Item[]] | undefined =>
    ({
      [`commits/${SHA}/check-runs`]: ["check_runs", state.runs] as const,
      [`commits/${SHA}/check-suites`]: ["check_suites", state.suites] as const,
      [`commits/${SHA}/status`]: ["statuses", state.statuses] as const,
      "actions/runs": ["workflow_runs", state.workflowRuns] as const,
    })[path];
  const server = await serveHttp((request, response) => {
    const url = new URL(request.url ?? "/", "http://github");
    const seen = { url, headers: request.headers, status: 0 };
    requests.push(seen);
    response.on("finish", () => {
      seen.status = response.statusCode;
    });
    if (state.answer?.(request, response, url)) return;
    const [, path = ""] = /^\/(?:repos\/octo\/app|repositories\/7)\/(.+)$/.exec(url.pathname) ?? [];
    const [key, items] = listAt(path) ?? [];
    if (key === undefined || items === undefined) return void response.writeHead(404).end("{}");
    const [page, size] = [Number(url.searchParams.get("page")), Number(url.searchParams.get("per_page"))];
    const shown = items.slice((page - 1) * size, page * size);
    const body = JSON.stringify({ total_count: items.length, [key]: shown });
    const etag = `W/"${body.length}-${page}"`;
    if (request.headers["if-none-match"] === etag) return void response.writeHead(304).end();
    response.writeHead(200, { etag, "content-type": "application/json" }).end(body);
  });
  const reset = () => {
    Object.assign(state, { runs: [], workflowRuns: [workflowRun(SUITE)], suites: [], statuses: [], answer: null });
    requests.length = 0;
  };
  reset();
  return { ...server, state, requests, reset };
}
