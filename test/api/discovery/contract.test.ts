import { describe, expect, onTestFinished, test } from "vitest";
import { forFile } from "../../support/for-file.ts";
import { serveHttp } from "../../support/http-server.ts";
import { expectDescribed, holdToItsWord, letGo } from "../../support/openapi/answers.ts";
import { contractOf, type Exchange, type OpenApi } from "../../support/openapi/openapi.ts";
import { send } from "../../support/payments/requests.ts";
import { heldAxios } from "../../support/sessions/agents.ts";
import { startScene } from "./scene.ts";

const scene = await forFile(startScene());
const text = (await send(`${scene.service.url}/openapi.json`)).text;

const problem = {
  type: "about:blank",
  title: "Not found",
  status: 404,
  detail: "d",
  code: "not_found",
  request_id: "r",
};
const health = (body: object, more: Partial<Exchange> = {}): Exchange => ({
  method: "GET",
  url: "http://trust.test/health",
  status: 200,
  contentType: "application/json",
  text: JSON.stringify(body),
  ...more,
});

describe("an answer is held to the OpenAPI description", () => {
  test.each<[string, Exchange, RegExp | null]>([
    ["as described", health({ ok: true, version: "1" }), null],
    ["with a member that is not described", health({ ok: true, version: "1", more: 1 }), /additional.*more/],
    ["without a member", health({ ok: true }), /required.*version/],
    ["with a member of another type", health({ ok: true, version: 1 }), /version must be string/],
    ["with another status", health({}, { status: 201 }), /not described with status 201/],
    ["of another media type", health({}, { contentType: "text/plain" }), /not described as text\/plain/],
    ["of a path that is not described", health({}, { url: "http://trust.test/x" }), /GET \/x is not described/],
    ["that there is no such path", health(problem, { url: "http://trust.test/x", status: 404 }), null],
    [
      "that is a problem as described",
      health(problem, { url: "http://trust.test/cert/1", status: 404, contentType: "application/problem+json" }),
      null,
    ],
    [
      "that is a problem with a code of its own",
      health(
        { ...problem, code: "gone" },
        { url: "http://trust.test/cert/1", status: 404, contentType: "application/problem+json" },
      ),
      /code must be equal/,
    ],
  ])("one %s", (_, exchange, fault) => {
    const complaint = contractOf(JSON.parse(text) as OpenApi).complaint(exchange);
    if (fault === null) expect(complaint).toBeNull();
    else expect(complaint).toMatch(fault);
  });
});

const { url: origin } = await forFile(
  serveHttp(({ url = "" }, response) => {
    const type = url === "/llms.txt" ? "text/plain" : "application/json";
    response.writeHead(200, { "content-type": type });
    if (url === "/openapi.json") response.end(text);
    else if (url === "/health") response.end('{"ok":true,"version":"1","more":1}');
    // Neither an endless text nor an endless document.
    else response.write("{");
  }),
);

describe("whichever client gets it, from a service of the test's own", () => {
  const WRONG = /^GET \/health 200 is not as described: .*more/;
  const CLIENTS: readonly [string, (url: string) => Promise<unknown>][] = [
    ["fetch", async (url) => expect(await (await fetch(url)).json()).toHaveProperty("more")],
    ["fetch of a request, whose body nobody reads", (url) => fetch(new Request(url))],
    ["axios", (url) => heldAxios().get(url)],
  ];

  test.each(CLIENTS)("%s gets the wrong answer as it is, and the test fails", async (_, ask) => {
    await ask(`${origin}/health`);
    await expectDescribed();
    holdToItsWord(origin);
    onTestFinished(() => letGo(origin));
    await ask(`${origin}/health`);
    await expect(expectDescribed()).rejects.toThrow(WRONG);
    letGo(origin);
    await ask(`${origin}/health`);
    await expectDescribed();
  });

  test("an answer that is never whole is handed on, and waited for no longer than its client does", async () => {
    holdToItsWord(origin);
    onTestFinished(() => letGo(origin));
    const given = new AbortController();
    expect((await fetch(`${origin}/llms.txt`, { signal: given.signal })).status).toBe(200);
    expect((await fetch(`${origin}/stats`, { signal: given.signal })).status).toBe(200);
    given.abort();
    const before = performance.now();
    await expectDescribed();
    expect(performance.now() - before).toBeLessThan(4_000);
  });
});
