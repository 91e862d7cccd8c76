import { expect } from "vitest";
import { askedOnChain, type EscrowScene, type Held, statusOf } from "./contract.ts";

/** For what waits for blocks and turns. */
export const PATIENT = { timeout: 30_000, interval: 20 };

/** What a task's half minute does by itself: it is anybody's again. */
export const END_TURNS = "UPDATE escrow_task SET look_at = '-infinity' WHERE state <> 'final'";

/** Exactly one transaction did it, and no other outcome was ever asked for. */
export async function expectOutcome(at: EscrowScene, one: Held, decision: "release" | "refund") {
  await expect.poll(() => statusOf(at, one), PATIENT).toBe(decision === "release" ? "released" : "refunded");
  const asked = await askedOnChain(at, one);
  expect(new Set(asked.map((call) => call.decision))).toEqual(new Set([decision]));
  const [done, ...more] = asked.filter(({ succeeded }) => succeeded);
  expect([done?.from, more]).toEqual([at.escrow.arbiter.toLowerCase(), []]);
  return done;
}
