import { expect } from "vitest";
import { rowByRow } from "../service/row-by-row.ts";
import { askedOnChain, type EscrowScene, type Held, statusOf } from "./contract.ts";

/** For waiting on blocks and turns. */
export const PATIENT = { timeout: 30_000, interval: 20 };

/** What the end of a task's half minute does: anyone may claim it again. */
export const END_TURNS = rowByRow({
  table: "escrow_task",
  key: ["payment"],
  set: "next_attempt_at = '-infinity'",
  where: "state <> 'final'",
});

/** Exactly one transaction did it, and no other outcome was ever requested. */
export async function expectOutcome(at: EscrowScene, one: Held, decision: "release" | "refund") {
  await expect.poll(() => statusOf(at, one), PATIENT).toBe(decision === "release" ? "released" : "refunded");
  // A block's state shows before its transactions do.
  await expect.poll(async () => (await askedOnChain(at, one)).some(({ succeeded }) => succeeded), PATIENT).toBe(true);
  const asked = await askedOnChain(at, one);
  expect(new Set(asked.map((call) => call.decision))).toEqual(new Set([decision]));
  const [done, ...more] = asked.filter(({ succeeded }) => succeeded);
  expect([done?.from, more]).toEqual([at.escrow.arbiter.toLowerCase(), []]);
  return done;
}
