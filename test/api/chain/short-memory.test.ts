import { expect, test } from "vitest";
import { createShortMemory } from "../../../api/adapters/chain/short-memory.ts";

const REMEMBERED = 10_000;

test("a name is remembered for its time, counted from when it was last told", () => {
  let now = 0;
  const memory = createShortMemory(100, () => now);
  memory.remember("one");
  now = 60;
  memory.remember("two");
  memory.remember("one");
  now = 159;
  expect([memory.has("one"), memory.has("two"), memory.has("three")]).toEqual([true, true, false]);
  now = 160;
  expect([memory.has("one"), memory.has("two")]).toEqual([false, false]);
});

test("of very many names, those that were told last are remembered", () => {
  const memory = createShortMemory(100, () => 0);
  memory.remember("told twice");
  for (let name = 0; name < REMEMBERED - 1; name++) memory.remember(String(name));
  expect([memory.has("told twice"), memory.has("0")]).toEqual([true, true]);
  memory.remember("told twice");
  memory.remember("one more");
  expect([memory.has("told twice"), memory.has("0"), memory.has("1")]).toEqual([true, false, true]);
});
