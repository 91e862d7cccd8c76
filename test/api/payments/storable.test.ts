import { expect, test } from "vitest";
import { isStorable } from "../../../api/payments/header.ts";

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
