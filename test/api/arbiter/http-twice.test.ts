import { gzipSync } from "node:zlib";
import { beforeEach, describe, expect, test } from "vitest";
import { claimSchema } from "../../../api/arbiter/claim.ts";
import { NO_TRANSACTIONS } from "../../../api/arbiter/evidence.ts";
import { gatherEvidence } from "../../../api/arbiter/gather-evidence.ts";
import { sleepUnlessAborted } from "../../../api/platform/clock.ts";
import { sends, sha256, TEXT, to } from "../../support/arbiter/rows.ts";
import { CLAIMS, examine, factsNamed, type Handler, judged, startSite } from "../../support/arbiter/site.ts";
import { forFile } from "../../support/for-file.ts";

// Version 2 of http-delivery: firewalls, publishing delays, and answers that depend on the request's headers.

const site = await forFile(startSite());
const waited: number[] = [];
beforeEach(() => {
  site.handlers.clear();
  site.requests.length = 0;
  waited.length = 0;
});

/** The evidence on `/`, which serves these responses in order. The last one repeats. */
const look = (answers: readonly Handler[], conditions: Record<string, unknown> = {}) => {
  const left = [...answers];
  site.handlers.set("/", (request, response) => (left.length > 1 ? left.shift() : left[0])?.(request, response));
  return examine(
    "http-delivery",
    { url: "http://shop.example/", ...conditions },
    { fetcher: site.fetcher(), waits: (ms) => waited.push(ms) },
  );
};
const page = sends(200, {}, TEXT);

describe("false results that need two attempts", () => {
  test.each([
    ["404, 404", [sends(404)], {}, "refund", ["status false mismatch"]],
    ["404, then the page", [sends(404), page], {}, "escalate", ["status unknown two_answers"]],
    ["404, 410", [sends(404), sends(410)], {}, "escalate", ["status unknown two_answers"]],
    ["404, 503", [sends(404), sends(503)], {}, "escalate", ["status unknown two_answers"]],
    ["503, 404", [sends(503), sends(404)], {}, "escalate", ["status unknown two_answers"]],
    [
      "other bytes twice, the same",
      [sends(200, {}, "one")],
      { expect_sha256: sha256(TEXT) },
      "refund",
      ["status true match", "expect_sha256 false mismatch"],
    ],
    [
      "different bytes each time, as firewall pages have",
      [sends(200, {}, "one"), sends(200, {}, "two")],
      { expect_sha256: sha256(TEXT) },
      "escalate",
      ["status true match", "expect_sha256 unknown two_answers"],
    ],
    [
      "a text that is missing from two different pages",
      [sends(200, {}, "one"), sends(200, {}, "two")],
      { expect_contains: "three" },
      "refund",
      ["status true match", "expect_contains false mismatch"],
    ],
    [
      "different bytes, then the agreed ones",
      [sends(200, {}, "not yet"), page],
      { expect_sha256: sha256(TEXT) },
      "escalate",
      ["status true match", "expect_sha256 unknown two_answers"],
    ],
    [
      "404, then different bytes",
      [sends(404), sends(200, {}, "one")],
      { expect_sha256: sha256(TEXT) },
      "escalate",
      ["status unknown two_answers", "expect_sha256 unknown two_answers"],
    ],
  ] as const)("%s: both attempts decide together", async (...[_is, answers, conditions, verdict, findings]) => {
    const evidence = await look(answers, conditions);
    expect(evidence.verdict).toBe(verdict);
    expect(judged(evidence)).toEqual(findings);
    expect(site.requests).toHaveLength(2);
  });

  test("Only 404 and 410 are false among the statuses from 400 to 499", async () => {
    const refunded: number[] = [];
    for (let status = 400; status <= 499; status++)
      if ((await look([sends(status)])).verdict === "refund") refunded.push(status);
    expect(refunded).toEqual([404, 410]);
  });

  test("The second attempt comes five seconds later, or immediately if the first one decided nothing", async () => {
    await look([sends(404)]);
    expect(waited).toEqual([5_000]);
    await look([sends(503)]);
    expect(waited).toEqual([5_000]);
    expect((await look([page])).verdict).toBe("release");
    expect(waited).toEqual([5_000]);
  });

  test("A caller that gives up ends the wait with its own abort reason", async () => {
    site.handlers.set("/", sends(404));
    const gone = new AbortController();
    const claim = claimSchema(CLAIMS).parse({
      category: "http-delivery",
      conditions: { url: "http://shop.example/" },
    });
    const unasked = () => Promise.reject(new Error("unexpected call"));
    const parts = {
      ...CLAIMS,
      fetcher: site.fetcher(),
      checkRuns: { read: unasked, suites: unasked, statuses: unasked },
      transactions: NO_TRANSACTIONS,
      wait(ms: number, signal: AbortSignal) {
        const waiting = sleepUnlessAborted(ms, signal);
        gone.abort(new Error("gave up"));
        return waiting;
      },
    };
    await expect(gatherEvidence(parts, claim, gone.signal)).rejects.toThrow("gave up");
    expect(site.requests).toHaveLength(1);
  });

  test("A second attempt that finds everything true releases if the first one decided nothing", async () => {
    expect((await look([sends(503), page])).verdict).toBe("release");
  });

  test("An agreed status of 400 or higher releases only if both attempts see it", async () => {
    const gone = { expect_status: 404 };
    expect((await look([sends(404)], gone)).verdict).toBe("release");
    expect(waited).toEqual([5_000]);
    for (const answers of [
      [sends(404), page],
      [page, sends(404)],
      [sends(503), sends(404)],
    ])
      expect((await look(answers, gone)).verdict).toBe("escalate");
  });
});

describe("headers of the two requests", () => {
  /** A site that shows its page only to browsers. */
  const picky: Handler = (request, response) => {
    const isBrowser = request.headers.accept?.startsWith("text/html") && request.headers["accept-language"];
    (isBrowser ? page : sends(404))(request, response);
  };

  test("A page that only browsers see escalates, because the second attempt sends a browser's headers", async () => {
    expect((await look([picky])).verdict).toBe("escalate");
  });

  test("The facts list the headers of both requests as sent", async () => {
    const evidence = await look([sends(404)]);
    const stated = factsNamed(evidence, "fetch_attempt").map((fact) => fact.request_headers);
    expect(stated).toEqual([
      { accept: "*/*", "accept-encoding": "identity", connection: "close", "user-agent": "test" },
      {
        accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        "accept-encoding": "identity",
        "accept-language": "en-US,en;q=0.9",
        connection: "close",
        "user-agent": expect.stringMatching(/^Mozilla\/5\.0 .*Chrome\/[\d.]+ Safari\/[\d.]+ test$/),
      },
    ]);
    expect(site.requests.map(({ headers: { host: _, ...headers } }) => headers)).toEqual(stated);
  });
});

describe("firewall responses", () => {
  const HEADERS: readonly (readonly [string, string])[] = [
    ["cf-mitigated", "challenge"],
    ["CF-Mitigated", "Challenge"],
    ["x-amzn-waf-action", "challenge"],
    ["x-amzn-waf-action", "captcha"],
    ["x-vercel-mitigated", "challenge"],
    ["x-vercel-mitigated", "deny"],
    ["x-dd-b", "1"],
  ];

  test.each(HEADERS)("A response with %s: %s escalates with any status and any conditions", async (name, value) => {
    for (const [status, conditions] of [
      [200, {}],
      [202, {}],
      [404, {}],
      [404, { expect_status: 404 }],
      [405, { expect_status: 200 }],
      [200, { expect_contains: "whole", min_bytes: 10, expect_sha256: sha256(TEXT) }],
      [302, { expect_status: 302 }],
    ] as const) {
      const evidence = await look([sends(status, { [name]: value }, status === 200 ? "prove it" : "")], conditions);
      expect(evidence.verdict).toBe("escalate");
      expect(new Set(judged(evidence).map((one) => one.split(" ").slice(1).join(" ")))).toEqual(
        new Set(["unknown challenge"]),
      );
      expect(factsNamed(evidence, "fetch_attempt")[0]).toMatchObject({
        status,
        challenge: `${name.toLowerCase()}: ${value}`,
      });
    }
  });

  test("DataDome's header can be on any response, so it counts only on an error", async () => {
    const marked = { "x-datadome": "protected" };
    expect((await look([sends(200, marked, TEXT)])).verdict).toBe("release");
    expect((await look([sends(404, marked)])).verdict).toBe("escalate");
  });

  test("A redirect to a challenge is not followed", async () => {
    site.handlers.set("/check", page);
    const evidence = await look([sends(302, { "x-amzn-waf-action": "captcha", location: "/check" })]);
    expect(judged(evidence)).toEqual(["status unknown challenge"]);
    expect(site.requests.map(({ path }) => path)).toEqual(["/", "/"]);
  });

  test("A challenge at the end of a redirect escalates", async () => {
    site.handlers.set("/wall", sends(200, { "cf-mitigated": "challenge" }, "prove it"));
    expect(judged(await look([to("/wall")]))).toEqual(["status unknown challenge"]);
  });

  test.each([403, 405, 406, 428, 429])("A %i escalates even without such a header", async (status) => {
    expect(judged(await look([sends(status)]))).toEqual(["status unknown undecided_status"]);
    expect(judged(await look([sends(status)], { expect_status: 200 }))).toEqual(["status unknown undecided_status"]);
  });

  test("A page after a challenge releases, because the page was there", async () => {
    expect((await look([sends(403, { "cf-mitigated": "challenge" }), page])).verdict).toBe("release");
  });
});

describe("empty body", () => {
  const EMPTY = sha256("");

  test.each([
    [200, {}, "escalate", "status unknown empty_body"],
    [200, { expect_status: 200 }, "escalate", "status unknown empty_body"],
    [204, {}, "escalate", "status unknown empty_body"],
    [204, { expect_status: 204 }, "release", "status true match"],
    [205, { expect_status: "205" }, "release", "status true match"],
    [200, { min_bytes: 0 }, "release", "status true match"],
    [200, { expect_sha256: EMPTY }, "release", "status true match"],
    [204, { min_bytes: 1 }, "refund", "status true match"],
    [200, { expect_contains: "x" }, "refund", "status true match"],
    [202, {}, "escalate", "status unknown undecided_status"],
    [202, { expect_status: 202 }, "escalate", "status unknown empty_body"],
    [202, { min_bytes: 1 }, "escalate", "status true match"],
    [202, { expect_status: 200 }, "escalate", "status unknown undecided_status"],
  ] as const)(
    "A %i with an empty body and %j is judged by what was agreed",
    async (...[status, conditions, verdict, finding]) => {
      const evidence = await look([sends(status)], conditions);
      expect([evidence.verdict, judged(evidence)[0]]).toEqual([verdict, finding]);
    },
  );

  test("A body that is empty after decoding is an empty body", async () => {
    expect(judged(await look([sends(200, { "content-encoding": "gzip" }, gzipSync(""))]))).toEqual([
      "status unknown empty_body",
    ]);
    expect(judged(await look([sends(200, { "content-encoding": "zstd" })]))).toEqual(["status unknown empty_body"]);
  });
});

describe("202 that the claim does not expect", () => {
  test("An unexpected 202 releases only with the agreed content and never refunds", async () => {
    const accepted = sends(202, {}, TEXT);
    expect((await look([accepted], { expect_sha256: sha256(TEXT) })).verdict).toBe("release");
    expect(judged(await look([accepted], { expect_sha256: sha256("else") }))).toEqual([
      "status true match",
      "expect_sha256 unknown not_yet",
    ]);
    expect((await look([accepted])).verdict).toBe("escalate");
    expect((await look([accepted], { expect_status: 202 })).verdict).toBe("release");
    expect((await look([accepted], { expect_status: 202, min_bytes: 9_999 })).verdict).toBe("refund");
  });
});
