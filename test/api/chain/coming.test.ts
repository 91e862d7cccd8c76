import { expect, test } from "vitest";
import { createComing } from "../../../api/adapters/chain/coming.ts";

test("what was announced is expected until it comes, and for a tenth of a second at most", () => {
  let now = 0;
  const coming = createComing(() => now);
  coming.announce("one");
  now = 60;
  coming.announce("two");
  coming.announce("three");
  coming.strike("three");
  expect(coming.count()).toBe(2);
  now = 100;
  expect(coming.count()).toBe(1);
  coming.announce("two");
  now = 199;
  expect(coming.count()).toBe(1);
  now = 200;
  expect(coming.count()).toBe(0);
});
