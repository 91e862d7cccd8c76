import { expect, test } from "vitest";
import { wholeRequest } from "../../../packages/escrow/src/whole-request.ts";

const itself = (request: Request): Request => request;

/** As in Deno and in Cloudflare's workers. */
function withFixedHeaders(request: Request): Request {
  const value = () => {
    throw new TypeError("Headers are immutable.");
  };
  Object.defineProperty(request.headers, "delete", { value });
  return request;
}

const CONDITIONS = { "If-None-Match": "*", "If-Modified-Since": "Wed, 21 Oct 2015 07:28:00 GMT", Range: "bytes=0-0" };

test.each([
  ["can be changed", itself],
  ["cannot be changed", withFixedHeaders],
])("a request whose headers %s is handed on without conditions, and whole otherwise", async (_, asSent) => {
  const headers = { ...CONDITIONS, "content-type": "text/plain", "x-shop": "3" };
  const sent = new Request("http://shop.example/haiku", { method: "PUT", body: "rain", headers });
  const request = wholeRequest(asSent(sent));
  expect([request.method, request.url, await request.text()]).toEqual(["PUT", "http://shop.example/haiku", "rain"]);
  expect(Object.fromEntries(request.headers)).toEqual({ "content-type": "text/plain", "x-shop": "3" });
});

test("where its body has been read, a request is handed on without it", async () => {
  const sent = new Request("http://shop.example/haiku", { method: "POST", body: "rain", headers: CONDITIONS });
  const read = withFixedHeaders(sent);
  await read.text();
  expect([...wholeRequest(read).headers.keys()]).not.toContain("range");
});
