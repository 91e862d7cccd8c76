import { beforeEach, describe, expect, test } from "vitest";
import { createGithubChecks } from "../../../api/arbiter/github.ts";
import { type Item, run, SHA, startGithub, status, workflowRun } from "../../support/arbiter/github.ts";
import { examine, factsNamed, judged } from "../../support/arbiter/site.ts";
import { forFile } from "../../support/for-file.ts";
import { serveHttp } from "../../support/http-server.ts";

const { state, requests, reset, url: apiUrl } = await forFile(startGithub());
beforeEach(reset);

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
