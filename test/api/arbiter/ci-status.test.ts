import type { IncomingMessage, ServerResponse } from "node:http";
import { beforeEach, describe, expect, test } from "vitest";
import { createGithubChecks } from "../../../api/adapters/web/github-checks.ts";
import { examine, factsNamed, judged } from "../../support/arbiter/site.ts";
import { forFile } from "../../support/for-file.ts";
import { serveHttp } from "../../support/http-server.ts";

const SHA = "a".repeat(40);
type Run = Record<string, unknown>;
const run = (id: number, conclusion: string | null, more: Run = {}): Run => ({
  id,
  name: `check ${id}`,
  head_sha: SHA,
  status: conclusion === null ? "in_progress" : "completed",
  conclusion,
  output: { text: "x" },
  ...more,
});

/** What the stand-in for GitHub knows and saw. */
let runs: Run[] = [];
let answer: ((request: IncomingMessage, response: ServerResponse, url: URL) => boolean) | null = null;
const requests: { readonly url: URL; readonly headers: IncomingMessage["headers"]; status: number }[] = [];

/** https://docs.github.com/en/rest/checks/runs#list-check-runs-for-a-git-reference, with pages and ETags. */
function speak(request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? "/", apiUrl);
  const seen = { url, headers: request.headers, status: 0 };
  requests.push(seen);
  response.on("finish", () => {
    seen.status = response.statusCode;
  });
  if (answer?.(request, response, url)) return;
  if (!/^\/(repos\/octo\/app|repositories\/7)\/commits\/a{40}\/check-runs$/.test(url.pathname))
    return void response.writeHead(404).end("{}");
  const [page, size] = [Number(url.searchParams.get("page")), Number(url.searchParams.get("per_page"))];
  const body = JSON.stringify({ total_count: runs.length, check_runs: runs.slice((page - 1) * size, page * size) });
  const etag = `W/"${body.length}-${page}"`;
  if (request.headers["if-none-match"] === etag) return void response.writeHead(304).end();
  response.writeHead(200, { etag, "content-type": "application/json" }).end(body);
}

const { url: apiUrl } = await forFile(serveHttp(speak));
beforeEach(() => {
  runs = [];
  answer = null;
  requests.length = 0;
});

const github = (token: string | null = null, deadlineMs = 5_000) =>
  createGithubChecks({ apiUrl, token, userAgent: "test", deadlineMs });
const examineCommit = (checkRuns = github(), repo = "octo/app") =>
  examine("ci-status", { repo, commit_sha: SHA.toUpperCase() }, { checkRuns });
const fails = (status: number, headers: Record<string, string> = {}) => {
  answer = (_request, response) => {
    response.writeHead(status, headers).end("{}");
    return true;
  };
};

describe("the table of ci-status", () => {
  test.each([
    ["all good", [run(1, "success"), run(2, "neutral"), run(3, "skipped")], "release", "true all_good"],
    ["a failure", [run(1, "success"), run(2, "failure")], "refund", "false bad_conclusion"],
    ...["cancelled", "timed_out", "action_required", "stale", "startup_failure", "a word of the future"].map(
      (bad) => [bad, [run(1, bad)], "refund", "false bad_conclusion"] as const,
    ),
    ["a failure while another runs", [run(1, null), run(2, "failure")], "refund", "false bad_conclusion"],
    ["one still runs", [run(1, "success"), run(2, null)], "escalate", "unknown pending"],
    ["queued", [run(1, null, { status: "queued" })], "escalate", "unknown pending"],
    ["completed without a conclusion", [run(1, null, { status: "completed" })], "escalate", "unknown pending"],
    ["no run", [], "escalate", "unknown no_runs"],
    [
      "a run of another commit",
      [run(1, "success"), run(2, "success", { head_sha: "b".repeat(40) })],
      "escalate",
      "unknown other_commit",
    ],
    [
      "a failure of another commit",
      [run(1, "failure", { head_sha: "b".repeat(40) })],
      "escalate",
      "unknown other_commit",
    ],
  ] as const)("%s", async (...[_is, given, verdict, finding]) => {
    runs = [...given];
    const evidence = await examineCommit();
    expect(evidence.verdict).toBe(verdict);
    expect(judged(evidence)).toEqual([`check_runs ${finding}`]);
    expect(factsNamed(evidence, "check_run").map(({ id }) => id)).toEqual(given.map(({ id }) => id));
    expect(Object.fromEntries(requests[0]?.url.searchParams ?? [])).toEqual({
      filter: "latest",
      per_page: "100",
      page: "1",
    });
  });

  test.each([
    [404, {}, "not_found"],
    [422, {}, "not_found"],
    [429, {}, "rate_limited"],
    [403, { "x-ratelimit-remaining": "0" }, "rate_limited"],
    [403, { "retry-after": "60" }, "rate_limited"],
    [403, { "x-ratelimit-remaining": "9" }, "denied"],
    [401, {}, "denied"],
    [500, {}, "unavailable"],
    [200, {}, "bad_response"],
    [304, {}, "unavailable"],
  ])("a %i with %j escalates", async (status, headers, reason) => {
    fails(status, headers as Record<string, string>);
    const evidence = await examineCommit();
    expect(evidence.verdict).toBe("escalate");
    expect(judged(evidence)).toEqual([`check_runs unknown ${reason}`]);
  });

  test("no answer in time escalates", async () => {
    answer = () => true;
    expect(judged(await examineCommit(github(null, 200)))).toEqual(["check_runs unknown unavailable"]);
  });
});

describe("pages", () => {
  test("a failure on the last of all pages refunds", async () => {
    runs = [...Array.from({ length: 249 }, (_, index) => run(index + 1, "success")), run(250, "failure")];
    expect((await examineCommit()).verdict).toBe("refund");
    expect(requests.map(({ url }) => url.searchParams.get("page"))).toEqual(["1", "2", "3"]);
  });

  test("exactly 100 runs are one page", async () => {
    runs = Array.from({ length: 100 }, (_, index) => run(index + 1, "success"));
    expect((await examineCommit()).verdict).toBe("release");
    expect(requests).toHaveLength(1);
  });

  test("more than 1,000 runs cannot all be read, which escalates", async () => {
    runs = Array.from({ length: 1_001 }, (_, index) => run(index + 1, "success"));
    expect(judged(await examineCommit())).toEqual(["check_runs unknown partial"]);
  });

  test("fewer runs than the count says escalate", async () => {
    answer = (_request, response) => {
      response.end(JSON.stringify({ total_count: 2, check_runs: [run(1, "success")] }));
      return true;
    };
    expect(judged(await examineCommit())).toEqual(["check_runs unknown partial"]);
  });
});

describe("redirects, ETags and tokens", () => {
  const renamed = (to: string) => {
    answer = (_request, response, url) => {
      if (!url.pathname.startsWith("/repos/octo/old/")) return false;
      response.writeHead(301, { location: to }).end();
      return true;
    };
  };

  test("a renamed repository is followed, with all of its pages", async () => {
    runs = Array.from({ length: 150 }, (_, index) => run(index + 1, "success"));
    renamed(`/repositories/7/commits/${SHA}/check-runs`);
    expect((await examineCommit(github("secret"), "octo/old")).verdict).toBe("release");
    expect(requests.map(({ url }) => url.pathname.split("/")[1])).toEqual(["repos", "repositories", "repositories"]);
    expect(requests.every(({ headers }) => headers.authorization === "Bearer secret")).toBe(true);
  });

  test("a redirect to another origin is not, so that the token stays here", async () => {
    let strangers = 0;
    const stranger = await serveHttp((_request, response) => {
      strangers += 1;
      response.end("{}");
    });
    renamed(`${stranger.url}/repositories/7/commits/${SHA}/check-runs`);
    expect(judged(await examineCommit(github("secret"), "octo/old"))).toEqual(["check_runs unknown bad_response"]);
    expect(strangers).toBe(0);
    stranger.stop();
  });

  test("a redirect that loops ends", async () => {
    renamed(`/repos/octo/old/commits/${SHA}/check-runs`);
    expect(judged(await examineCommit(github(), "octo/old"))).toEqual(["check_runs unknown bad_response"]);
    expect(requests).toHaveLength(4);
  });

  test("an unchanged page is answered from memory, a changed one is not", async () => {
    runs = [run(1, "success")];
    const checks = github();
    expect((await examineCommit(checks)).verdict).toBe("release");
    expect((await examineCommit(checks)).verdict).toBe("release");
    runs = [run(1, "failure"), run(2, "success")];
    expect((await examineCommit(checks)).verdict).toBe("refund");
    expect(requests.map(({ status }) => status)).toEqual([200, 304, 200]);
    expect(requests[0]?.headers.authorization).toBeUndefined();
  });
});
