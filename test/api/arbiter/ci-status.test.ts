import type { IncomingMessage, ServerResponse } from "node:http";
import { beforeEach, describe, expect, test } from "vitest";
import { createGithubChecks } from "../../../api/arbiter/github.ts";
import { VERSION_1 } from "../../../api/arbiter/policy/v1/policy.ts";
import { examine, factsNamed, judged, type Sources } from "../../support/arbiter/site.ts";
import { forFile } from "../../support/for-file.ts";
import { serveHttp } from "../../support/http-server.ts";

const SHA = "a".repeat(40);
/** An item of one of GitHub's lists. */
type Item = Record<string, unknown>;

const OWN = { id: 1, full_name: "octo/app" };
const FORK = { id: 2, full_name: "mallory/app" };
const ACTIONS = { id: 15_368, slug: "github-actions" };
const OTHER_APP = { id: 9, slug: "other-ci" };
/** The suite of runs without another one. */
const SUITE = 7;

/** A run of GitHub Actions in the repository itself, with these fields overridden. */
const run = (id: number, conclusion: string | null, more: Item = {}): Item => ({
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
const workflowRun = (suite: number, more: Item = {}): Item => ({
  id: suite * 10,
  check_suite_id: suite,
  workflow_id: 3,
  head_branch: "main",
  repository: OWN,
  head_repository: OWN,
  ...more,
});

const suite = (id: number, more: Item = {}): Item => ({ id, head_branch: "main", pull_requests: [], ...more });

const status = (id: number, state: string, more: Item = {}): Item => ({
  id,
  context: `ci/${id}`,
  state,
  ...more,
});

type Intercept = (request: IncomingMessage, response: ServerResponse, url: URL) => boolean;

/** A stand-in for GitHub's REST API about one commit, with pages and ETags. */
async function startGithub() {
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

const { state, requests, reset, url: apiUrl } = await forFile(startGithub());
beforeEach(reset);

const github = (token: string | null = null, deadlineMs = 5_000) =>
  createGithubChecks({ apiUrl, token, userAgent: "test", deadlineMs });
const examineCommit = (checkRuns = github(), repo = "octo/app", more: Sources = {}) =>
  examine("ci-status", { repo, commit_sha: SHA.toUpperCase() }, { checkRuns, ...more });
const fails = (code: number, headers: Record<string, string> = {}, path = "") => {
  state.answer = (_request, response, { pathname }) => {
    if (!pathname.endsWith(path)) return false;
    response.writeHead(code, headers).end("{}");
    return true;
  };
};
const lists = () => requests.map(({ url }) => url.pathname.split("/").at(-1));

const NOT_READ = "commit_statuses unknown not_read";
const NONE = "commit_statuses true none";

describe("decision table of ci-status", () => {
  test.each([
    ["all good", [run(1, "success"), run(2, "neutral"), run(3, "skipped")], "release", "true all_good"],
    ["a failure", [run(1, "success"), run(2, "failure")], "refund", "false bad_conclusion"],
    ...["timed_out", "startup_failure"].map((bad) => [bad, [run(1, bad)], "refund", "false bad_conclusion"] as const),
    ...["action_required", "a word of the future"].map(
      (other) => [other, [run(1, other), run(2, "cancelled")], "escalate", "unknown no_result"] as const,
    ),
    ...["cancelled", "stale"].map((ended) => [ended, [run(1, ended)], "escalate", "unknown cancelled"] as const),
    ["cancelled next to a success", [run(1, "cancelled"), run(2, "success")], "escalate", "unknown cancelled"],
    ["cancelled next to a failure", [run(1, "cancelled"), run(2, "failure")], "refund", "false bad_conclusion"],
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
  ] as const)("%s gets the verdict and the finding of the table", async (...[_is, given, verdict, finding]) => {
    state.runs = [...given];
    const evidence = await examineCommit();
    expect(evidence.verdict).toBe(verdict);
    expect(judged(evidence)).toEqual([`check_runs ${finding}`, verdict === "release" ? NONE : NOT_READ]);
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
  ])("A %i with %j escalates", async (code, headers, reason) => {
    fails(code, headers as Record<string, string>);
    const evidence = await examineCommit();
    expect(evidence.verdict).toBe("escalate");
    expect(judged(evidence)).toEqual([`check_runs unknown ${reason}`, NOT_READ]);
  });

  test("A request that times out escalates", async () => {
    state.answer = () => true;
    expect(judged(await examineCommit(github(null, 200)))).toEqual(["check_runs unknown unavailable", NOT_READ]);
  });

  test("Version 1 of the policy refunds a cancelled run without reading anything else", async () => {
    state.runs = [run(1, "cancelled", { name: "test" }), run(2, "success", { name: "test" })];
    const evidence = await examineCommit(github(), "octo/app", { policies: [VERSION_1] });
    expect([evidence.verdict, judged(evidence)]).toEqual(["refund", ["check_runs false bad_conclusion"]]);
    expect(lists()).toEqual(["check-runs"]);
  });
});

describe("several runs of one check", () => {
  const named = (id: number, conclusion: string | null, more: Item = {}) =>
    run(id, conclusion, { name: "test", ...more });
  const why = (evidence: Awaited<ReturnType<typeof examineCommit>>) =>
    factsNamed(evidence, "check_run").map(({ id, counts, why }) => `${id} ${counts} ${why}`);

  test.each([
    ["a cancelled run, then a success", "cancelled", "success", "release"],
    ["a failure, then a success", "failure", "success", "release"],
    ["a success, then a failure", "success", "failure", "refund"],
    ["a success, then a run that was cancelled", "success", "cancelled", "escalate"],
    ["a success, then one that still runs", "success", null, "escalate"],
  ] as const)("%s: the newest run counts", async (...[_is, older, newer, verdict]) => {
    // The order in the list does not matter.
    for (const given of [
      [named(1, older), named(2, newer)],
      [named(2, newer), named(1, older)],
    ]) {
      state.runs = given;
      const evidence = await examineCommit();
      expect(evidence.verdict).toBe(verdict);
      expect(why(evidence)).toEqual(["1 false superseded", "2 true newest"]);
    }
  });

  test("Another app's check with the same name is a different check", async () => {
    state.runs = [named(1, "failure", { app: OTHER_APP, check_suite: { id: 8 } }), named(2, "success")];
    state.suites = [suite(7), suite(8)];
    const evidence = await examineCommit();
    expect([evidence.verdict, why(evidence)]).toEqual(["refund", ["1 true newest", "2 true newest"]]);
  });

  test("A job of another workflow with the same name is a different check", async () => {
    state.runs = [named(1, "failure", { check_suite: { id: 8 } }), named(2, "success")];
    state.workflowRuns = [workflowRun(7), workflowRun(8, { workflow_id: 4 })];
    expect((await examineCommit()).verdict).toBe("refund");
    state.workflowRuns = [workflowRun(7), workflowRun(8)];
    expect((await examineCommit()).verdict).toBe("release");
  });
});

describe("runs for a fork", () => {
  const fromFork = (conclusion: string, more: Item = {}) =>
    run(2, conclusion, { name: "test", check_suite: { id: 8 }, ...more });
  const own = (conclusion: string) => run(1, conclusion, { name: "test" });
  const other = { app: OTHER_APP };
  const pull = (head: number | null) => ({ head: { repo: head && { id: head } }, base: { repo: { id: OWN.id } } });

  test.each<[string, { readonly app?: Item; readonly workflowRuns?: Item[]; readonly suites?: Item[] }]>([
    ["a workflow whose head repository is the fork", { workflowRuns: [workflowRun(8, { head_repository: FORK })] }],
    ["a workflow whose head repository is gone", { workflowRuns: [workflowRun(8, { head_repository: null })] }],
    ["another app's suite without a head branch", { app: other, suites: [suite(8, { head_branch: null })] }],
    [
      "another app's suite whose pull requests are the fork's",
      { app: other, suites: [suite(8, { pull_requests: [pull(FORK.id), pull(null)] })] },
    ],
  ])("%s does not count", async (_is, { app = {}, workflowRuns = [], suites = [] }) => {
    for (const [conclusion, ownConclusion, verdict] of [
      ["failure", "success", "release"],
      ["success", "failure", "refund"],
    ] as const) {
      state.runs = [own(ownConclusion), fromFork(conclusion, app)];
      state.workflowRuns = [workflowRun(7), ...workflowRuns];
      state.suites = [suite(7), ...suites];
      const evidence = await examineCommit();
      expect(evidence.verdict).toBe(verdict);
      expect(factsNamed(evidence, "check_run")[1]).toMatchObject({ id: 2, counts: false, why: "fork" });
      expect(factsNamed(evidence, "check_suite")).toMatchObject([{ origin: "own" }, { id: 8, origin: "fork" }]);
    }
    state.runs = [fromFork("success", app)];
    expect(judged(await examineCommit())).toEqual(["check_runs unknown no_runs", NOT_READ]);
  });

  test("A pull request from a branch of the repository counts even if another one comes from a fork", async () => {
    state.runs = [run(1, "failure", { ...other, check_suite: { id: 8 } })];
    state.suites = [suite(8, { pull_requests: [pull(FORK.id), pull(OWN.id)] })];
    expect((await examineCommit()).verdict).toBe("refund");
    expect(lists()).toEqual(["check-runs", "check-suites"]);
  });

  test.each<[string, Item, Item[]]>([
    ["the workflow run is not shown", {}, []],
    ["the suite has no workflow run, whatever its branch", { check_suite: { id: 9 } }, [workflowRun(8)]],
    ["the run has no suite", { check_suite: null }, [workflowRun(8)]],
    ["the run has no app", { app: null }, [workflowRun(8)]],
  ])("%s, so the run's origin is unclear and the claim escalates", async (_is, more, workflowRuns) => {
    state.runs = [own("success"), fromFork("failure", more)];
    state.workflowRuns = [workflowRun(7), ...workflowRuns];
    state.suites = [suite(7), suite(8), suite(9)];
    const evidence = await examineCommit();
    expect(judged(evidence)).toEqual(["check_runs unknown origin_unclear", NOT_READ]);
  });

  test("Suites that cannot be read escalate, even with a failed run", async () => {
    state.runs = [own("failure")];
    fails(403, { "retry-after": "60" }, "/actions/runs");
    const evidence = await examineCommit();
    expect([evidence.verdict, judged(evidence)]).toEqual(["escalate", ["check_runs unknown rate_limited", NOT_READ]]);
  });
});

describe("commit statuses", () => {
  const green = [run(1, "success")];

  test.each([
    ["success", "release", "true all_good"],
    ["failure", "escalate", "unknown not_success"],
    ["error", "escalate", "unknown not_success"],
    ["pending", "escalate", "unknown not_success"],
  ])("A status of %s is judged when all check runs are green", async (found, verdict, finding) => {
    state.runs = green;
    state.statuses = [status(1, "success"), status(2, found)];
    const evidence = await examineCommit();
    expect(evidence.verdict).toBe(verdict);
    expect(judged(evidence)).toEqual(["check_runs true all_good", `commit_statuses ${finding}`]);
    expect(factsNamed(evidence, "commit_status").map(({ context, state }) => `${context} ${state}`)).toEqual([
      "ci/1 success",
      `ci/2 ${found}`,
    ]);
  });

  test("Statuses alone never release, and after a failed run they are reported as not read", async () => {
    state.statuses = [status(1, "success")];
    expect(judged(await examineCommit())).toEqual(["check_runs unknown no_runs", NOT_READ]);
    state.runs = [run(1, "failure")];
    requests.length = 0;
    expect(factsNamed(await examineCommit(), "commit_statuses")).toEqual([
      { fact: "commit_statuses", outcome: "not_read" },
    ]);
    expect(lists()).toEqual(["check-runs", "runs"]);
  });

  test("Statuses that cannot be read escalate", async () => {
    state.runs = green;
    fails(500, {}, "/status");
    expect(judged(await examineCommit())).toEqual(["check_runs true all_good", "commit_statuses unknown unavailable"]);
  });
});

describe("lists of GitHub", () => {
  const github = (token: string | null = null) => createGithubChecks({ apiUrl, token, userAgent: "test" });
  const examineCommit = (checkRuns = github(), repo = "octo/app") =>
    examine("ci-status", { repo, commit_sha: SHA }, { checkRuns });
  const successes = (count: number): Item[] => Array.from({ length: count }, (_, index) => run(index + 1, "success"));
  const pagesOf = (list: string) =>
    requests.flatMap(({ url }) => (url.pathname.endsWith(list) ? [url.searchParams.get("page")] : []));

  describe("pages", () => {
    test("A failure on the last page refunds after the list is read a second time", async () => {
      state.runs = [...successes(249), run(250, "failure")];
      expect((await examineCommit()).verdict).toBe("refund");
      expect(pagesOf("/check-runs")).toEqual(["1", "2", "3", "1", "2", "3"]);
      expect(requests.slice(3, 6).map(({ status }) => status)).toEqual([304, 304, 304]);
    });

    test("A list of exactly 100 runs is one page and is read once", async () => {
      state.runs = successes(100);
      expect((await examineCommit()).verdict).toBe("release");
      expect(pagesOf("/check-runs")).toEqual(["1"]);
    });

    test("More than 1,000 runs cannot all be read, so the claim escalates even with a failure among those read", async () => {
      state.runs = [run(2_000, "failure"), ...successes(1_000)];
      const evidence = await examineCommit();
      expect(evidence.verdict).toBe("escalate");
      expect(judged(evidence)[0]).toBe("check_runs unknown partial");
      expect(factsNamed(evidence, "check_runs")).toMatchObject([{ complete: false, count: 1_000 }]);
    });

    const page = (total: number, ...shown: Item[]) => JSON.stringify({ total_count: total, check_runs: shown });
    const many = successes(150);
    /** Serves these bodies for check-runs alone, in order. The last one repeats. */
    const answers = (...bodies: string[]) => {
      state.answer = (_request, response, { pathname }) => {
        if (!pathname.endsWith("/check-runs")) return false;
        response.end(bodies.length > 1 ? bodies.shift() : bodies[0]);
        return true;
      };
    };
    const [first, second] = [many.slice(0, 100), many.slice(100)];

    test.each([
      [
        "fewer runs than total_count",
        [page(2, run(1, "success")), page(2), page(2, run(1, "success")), page(2)],
        "partial",
      ],
      ["more runs than total_count", [page(1, run(1, "success"), run(2, "success"))], "inconsistent"],
      [
        "another count on the second page",
        [page(150, ...first), page(151, ...second, run(151, "success"))],
        "inconsistent",
      ],
      ["a run on both pages", [page(150, ...first), page(150, ...first.slice(-1), ...second)], "inconsistent"],
      [
        "another conclusion when it is read again",
        [
          page(150, ...first),
          page(150, ...second),
          page(150, run(1, "failure"), ...first.slice(1)),
          page(150, ...second),
        ],
        "inconsistent",
      ],
    ])("%s escalate", async (_is, bodies, reason) => {
      answers(...bodies);
      const evidence = await examineCommit();
      expect(evidence.verdict).toBe("escalate");
      expect(judged(evidence)[0]).toBe(`check_runs unknown ${reason}`);
    });

    test("The same runs in another order are the same list", async () => {
      answers(page(150, ...first), page(150, ...second), page(150, ...first.toReversed()), page(150, ...second));
      expect((await examineCommit()).verdict).toBe("release");
    });

    test("Incomplete lists of suites and statuses escalate as well", async () => {
      state.runs = successes(1);
      const pages: Record<string, object> = {
        "/actions/runs": { total_count: 2, workflow_runs: [workflowRun(7)] },
        "/status": { total_count: 2, statuses: [status(1, "success"), status(1, "success")] },
      };
      for (const [path, body] of Object.entries(pages)) {
        state.answer = (_request, response, { pathname }) => {
          if (!pathname.endsWith(path)) return false;
          response.end(JSON.stringify(body));
          return true;
        };
        expect((await examineCommit()).verdict).toBe("escalate");
      }
    });
  });

  describe("redirects, ETags and tokens", () => {
    const renamed = (to: string) => {
      state.answer = (_request, response, url) => {
        if (!url.pathname.startsWith("/repos/octo/old/")) return false;
        response.writeHead(301, { location: url.pathname.replace("/repos/octo/old", to) }).end();
        return true;
      };
    };

    test("A renamed repository is followed through all of its pages", async () => {
      state.runs = successes(150);
      renamed("/repositories/7");
      expect((await examineCommit(github("secret"), "octo/old")).verdict).toBe("release");
      const runs = requests.filter(({ url }) => url.pathname.endsWith("/check-runs"));
      const to = runs.map(({ url }) => url.pathname.split("/")[1]);
      expect(to).toEqual(["repos", "repositories", "repositories", "repos", "repositories", "repositories"]);
      expect(requests.every(({ headers }) => headers.authorization === "Bearer secret")).toBe(true);
    });

    test("A redirect to another origin is not followed, so the token does not leak", async () => {
      let strangers = 0;
      const stranger = await serveHttp((_request, response) => {
        strangers += 1;
        response.end("{}");
      });
      renamed(`${stranger.url}/repositories/7`);
      expect(judged(await examineCommit(github("secret"), "octo/old"))[0]).toBe("check_runs unknown bad_response");
      expect(strangers).toBe(0);
      stranger.stop();
    });

    test("A redirect loop ends", async () => {
      renamed("/repos/octo/old");
      expect(judged(await examineCommit(github(), "octo/old"))[0]).toBe("check_runs unknown bad_response");
      expect(requests.length).toBeLessThanOrEqual(8);
    });
  });
});
