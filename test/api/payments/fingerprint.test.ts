import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bodyJson, fingerprint, isStorable } from "../../../api/payments/header.ts";

const bytes = (text: string) => Buffer.from(text);
const print = (body: string | Uint8Array, query = "", { route = "score", method = "POST" } = {}) =>
  fingerprint({
    method,
    route,
    query: new URLSearchParams(query),
    body: typeof body === "string" ? bytes(body) : body,
  }).toString("hex");

/** The same JSON value with the keys of every object in another order. */
function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, inner]) => [key, shuffled(inner)]),
  );
}

describe("two requests are the same request", () => {
  test("when only the order of keys and the white space differ", () =>
    expect(print('{"a":1,"b":{"c":[1,2],"d":null}}')).toBe(print(' { "b": {"d":null, "c":[1, 2]}, "a": 1.0 }')));

  test("whatever the value, when only the order of keys differs", () =>
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(print(JSON.stringify(value))).toBe(print(JSON.stringify(shuffled(value), null, 2)));
      }),
    ));

  test("when only the order of query parameters differs", () =>
    expect(print("", "b=2&a=1&a=0")).toBe(print("", "a=0&a=1&b=2")));

  test("when a character of the query is encoded differently", () =>
    expect(print("", "q=%20x")).toBe(print("", "q=+x")));
});

describe("two requests are different requests", () => {
  const base = print('{"a":1}', "q=1");
  test.each([
    ["another value", print('{"a":2}', "q=1")],
    ["another type", print('{"a":"1"}', "q=1")],
    ["another key", print('{"b":1}', "q=1")],
    ["another query value", print('{"a":1}', "q=2")],
    ["a query parameter more", print('{"a":1}', "q=1&q=1")],
    ["no query", print('{"a":1}')],
    ["another route", print('{"a":1}', "q=1", { route: "score.batch" })],
    ["another method", print('{"a":1}', "q=1", { method: "GET" })],
    ["no body", print("", "q=1")],
    ["the body's text as JSON string", print(JSON.stringify('{"a":1}'), "q=1")],
  ])("with %s", (_, other) => expect(other).not.toBe(base));

  test("when values of the query are split at a different place", () =>
    expect(print("", "a=1%26b%3D2")).not.toBe(print("", "a=1&b=2")));

  test("when the order of a list differs", () => expect(print("[1,2]")).not.toBe(print("[2,1]")));

  test("when bodies that are not JSON differ in one byte", () =>
    expect(print(Buffer.from([0xff, 1]))).not.toBe(print(Buffer.from([0xff, 2]))));
});

describe("the JSON value of a body", () => {
  test.each<[string, Uint8Array, unknown]>([
    ["an empty body is null", bytes(""), null],
    ["an object is itself", bytes('{"a":[1]}'), { a: [1] }],
    ["text that is no JSON is none", bytes("{a:1}"), undefined],
    ["bytes that are no UTF-8 are none", Buffer.from([0x22, 0xff, 0x22]), undefined],
    ["two values are none", bytes("{}{}"), undefined],
  ])("%s", (_, body, value) => expect(bodyJson(body)).toEqual(value));
});

describe("what the journal stores of a request", () => {
  const nested = (levels: number): unknown => JSON.parse("[".repeat(levels) + "]".repeat(levels));

  test.each<[string, unknown]>([
    ["null", null],
    ["a number", 1.5],
    ["any Unicode text", "é 😀 \u0001 \ud83d\ude00"],
    ["objects and lists", { a: [{ b: null }, "c"] }],
    ["64 levels", nested(64)],
  ])("the journal can store %s", (_, value) => expect(isStorable(value)).toBe(true));

  test.each<[string, unknown]>([
    ["U+0000", "a\u0000"],
    ["U+0000 in a name", { a: { "\u0000": 1 } }],
    ["half a surrogate pair", ["\ud83d"]],
    ["half a surrogate pair in a name", { "\ude00": 1 }],
    ["65 levels", nested(65)],
  ])("the journal cannot store %s", (_, value) => expect(isStorable(value)).toBe(false));
});
