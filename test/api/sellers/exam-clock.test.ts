import { expect, test } from "vitest";
import { examClock } from "../../../api/sellers/network-health.ts";
import { ExaminersFault } from "../../../packages/seller-check/src/exam/examiners-fault.ts";

const CHAIN = 1_790_000_000;

test.each([
  ["as the chain's", 0, 0],
  ["a lagging node ahead", 300, 300],
  ["behind the chain's", -120, 0],
])("a clock of ours that is %s judges by the later of the two", async (_, ahead, counted) => {
  const clock = await examClock({ now: async () => CHAIN }, () => new Date((CHAIN + ahead) * 1_000));
  expect(clock() / 1_000 - CHAIN).toBe(counted);
});

test("a clock far ahead of the chain, and a chain that cannot be read, hold no exam", async () => {
  const late = new Date((CHAIN + 301) * 1_000);
  await expect(examClock({ now: async () => CHAIN }, () => late)).rejects.toThrow(/301 seconds behind/);
  const away = examClock({ now: () => Promise.reject(new Error("away")) }, () => late);
  await expect(away).rejects.toThrow(ExaminersFault);
});
