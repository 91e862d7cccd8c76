import { Hono } from "hono";
import { expect, test } from "vitest";
import { z } from "zod";
import { Problem } from "../../../api/platform/http/errors.ts";
import { MAX_BODY_BYTES, readJson } from "../../../api/platform/http/request.ts";

const app = new Hono()
  .post("/", async (c) => c.json(await readJson(c, z.object({ name: z.string() }), "The body has a name.")))
  .onError((error, c) => (error instanceof Problem ? c.text(error.code) : c.text("our fault")));
const post = async (body: RequestInit["body"]) =>
  (await app.request("/", { method: "POST", body, duplex: "half" } as RequestInit)).text();
const bytes = (...parts: readonly (string | number)[]) =>
  new Uint8Array(
    Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from([part])))),
  );

test("a body of JSON is read as it is", async () => {
  expect(await post('{"name":"Zoë 🌧"}')).toBe('{"name":"Zoë 🌧"}');
});

test.each([
  ["nothing", ""],
  ["half of one", '{"name":'],
  ["another form", '["name"]'],
  ["bytes that are no UTF-8", bytes('{"name":"Zo', 0xeb, '"}')],
  ["as deep as it may be large", "[".repeat(MAX_BODY_BYTES)],
])("%s is the caller's mistake", async (_, body) => {
  expect(await post(body)).toBe("malformed_request");
});

test("a body whose length nobody said is read up to the limit", async () => {
  const stream = (size: number) => new Blob([" ".repeat(size), '{"name":"x"}']).stream();
  expect(await post(stream(MAX_BODY_BYTES - 12))).toBe('{"name":"x"}');
  expect(await post(stream(MAX_BODY_BYTES - 11))).toBe("body_too_large");
});
