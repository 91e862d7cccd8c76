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

/** Returns the same JSON value with the keys of every object in another order. */
function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, inner]) => [key, shuffled(inner)]),
  );
}

describe("Equal fingerprints", () => {
  test("Key order and white space do not change the fingerprint", () =>
    expect(print('{"a":1,"b":{"c":[1,2],"d":null}}')).toBe(print(' { "b": {"d":null, "c":[1, 2]}, "a": 1.0 }')));

  test("Key order does not change the fingerprint of any JSON value", () =>
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(print(JSON.stringify(value))).toBe(print(JSON.stringify(shuffled(value), null, 2)));
      }),
    ));

  test("The order of query parameters does not change the fingerprint", () =>
    expect(print("", "b=2&a=1&a=0")).toBe(print("", "a=0&a=1&b=2")));

  test("The encoding of a query character does not change the fingerprint", () =>
    expect(print("", "q=%20x")).toBe(print("", "q=+x")));
});

describe("Different fingerprints", () => {
  const base = print('{"a":1}', "q=1");
  test.each([
    ["a different value", print('{"a":2}', "q=1")],
    ["a different type", print('{"a":"1"}', "q=1")],
    ["a different key", print('{"b":1}', "q=1")],
    ["a different query value", print('{"a":1}', "q=2")],
    ["an additional query parameter", print('{"a":1}', "q=1&q=1")],
    ["no query", print('{"a":1}')],
    ["a different route", print('{"a":1}', "q=1", { route: "score.batch" })],
    ["a different method", print('{"a":1}', "q=1", { method: "GET" })],
    ["no body", print("", "q=1")],
    ["the body's text as a JSON string", print(JSON.stringify('{"a":1}'), "q=1")],
  ])("A request with %s has a different fingerprint", (_, other) => expect(other).not.toBe(base));

  test("Query values split at a different place have different fingerprints", () =>
    expect(print("", "a=1%26b%3D2")).not.toBe(print("", "a=1&b=2")));

  test("Lists in a different order have different fingerprints", () => expect(print("[1,2]")).not.toBe(print("[2,1]")));

  test("Non-JSON bodies that differ in one byte have different fingerprints", () =>
    expect(print(Buffer.from([0xff, 1]))).not.toBe(print(Buffer.from([0xff, 2]))));
});

describe("The JSON value of a body", () => {
  test.each<[string, Uint8Array, unknown]>([
    ["An empty body is null", bytes(""), null],
    ["An object is returned unchanged", bytes('{"a":[1]}'), { a: [1] }],
    ["Text that is not JSON is undefined", bytes("{a:1}"), undefined],
    ["Bytes that are not UTF-8 are undefined", Buffer.from([0x22, 0xff, 0x22]), undefined],
    ["Two values are undefined", bytes("{}{}"), undefined],
  ])("%s", (_, body, value) => expect(bodyJson(body)).toEqual(value));
});

describe("Values that the journal can store", () => {
  const nested = (levels: number): unknown => JSON.parse("[".repeat(levels) + "]".repeat(levels));

  test.each<[string, unknown]>([
    ["null", null],
    ["a number", 1.5],
    ["any Unicode text", "é 😀 \u0001 \ud83d\ude00"],
    ["objects and lists", { a: [{ b: null }, "c"] }],
    ["64 levels", nested(64)],
  ])("The journal can store %s", (_, value) => expect(isStorable(value)).toBe(true));

  test.each<[string, unknown]>([
    ["U+0000", "a\u0000"],
    ["U+0000 in a name", { a: { "\u0000": 1 } }],
    ["half a surrogate pair", ["\ud83d"]],
    ["half a surrogate pair in a name", { "\ude00": 1 }],
    ["65 levels", nested(65)],
  ])("The journal cannot store %s", (_, value) => expect(isStorable(value)).toBe(false));
});
