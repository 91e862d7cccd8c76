import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { contractOf, type Exchange, type OpenApi } from "../support/openapi.ts";
import { send } from "../support/payments.ts";
import { type Scene, startScene } from "./scene.ts";

let scene: Scene;
let text: string;
beforeAll(async () => {
  scene = await startScene();
  text = (await send(`${scene.service.url}/openapi.json`)).text;
});
afterAll(() => scene?.stop());

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

  test("whenever a test asks a service that publishes one", async () => {
    const answers: Record<string, string> = { "/openapi.json": text, "/health": '{"ok":true,"version":"1","more":1}' };
    const server = createServer(({ url = "" }, response) =>
      response.setHeader("content-type", "application/json").end(answers[url]),
    );
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await expect(send(`${origin}/health`)).rejects.toThrow(/GET \/health 200 is not as described/);
    server.closeAllConnections();
    server.close();
  });
});
