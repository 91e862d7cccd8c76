import { describe, expect, test } from "vitest";
import type { Row, StepEvent } from "../../../api/payments/step-types.ts";
import {
  BURNT,
  COMPLETED,
  chain,
  DONE,
  ELSEWHERE,
  EXPIRED,
  FINAL,
  HANDLE_FAILED,
  HANDLED,
  LOST,
  PAID,
  play,
  REVERTED,
  resolve,
  row,
  SPENT,
  SUBMITTED,
  story,
  UNAVAILABLE,
  UNUSED,
} from "./machine.ts";

describe("the resolver", () => {
  test.each<[string, Row]>([
    ["received", row("received")],
    ["void", row("void")],
    ["fulfilled and final", row("fulfilled", { final: true })],
    ["a bait", row("fulfilled", { reason: "bait", settlement: null })],
    ["settling with a live lease", row("settling", { leaseLive: true })],
    ["settled with a live lease", row("settled", { leaseLive: true })],
    ["fulfilled with a live lease", row("fulfilled", { leaseLive: true })],
  ])("leaves what is %s", (_, known) => expect(story(resolve(known))).toBe("done"));

  test.each<[string, Row, readonly StepEvent[], string]>([
    [
      "handles what is paid",
      row("settling"),
      [DONE, chain(PAID), HANDLED, COMPLETED],
      "take settling → look → handle → complete → done",
    ],
    [
      "gives up what was mined without settling",
      row("settling"),
      [DONE, chain(REVERTED), DONE],
      "take settling → look → write void reverted → done",
    ],
    [
      "never submits what nobody retries",
      row("settling"),
      [DONE, chain(UNUSED), DONE],
      "take settling → look → release → done",
    ],
    [
      "waits for a final block before it gives up a spent nonce",
      row("settling"),
      [DONE, chain(SPENT), DONE],
      "take settling → look → release → done",
    ],
    [
      "gives up what is dead at a final block",
      row("settling"),
      [DONE, chain(EXPIRED), DONE],
      "take settling → look → write void expired → done",
    ],
    [
      "looks again at what was settled, then handles it",
      row("settled"),
      [DONE, chain(PAID), HANDLED, COMPLETED],
      "take settled → look → handle → complete → done",
    ],
    [
      "sends what vanished back, without submitting it",
      row("settled"),
      [DONE, chain(UNUSED), DONE, DONE],
      "take settled → look → write settling → release → done",
    ],
    [
      "leaves a failing handler for later",
      row("settled"),
      [DONE, chain(PAID), HANDLE_FAILED, DONE, DONE],
      "take settled → look → handle → write settled → release failed → done",
    ],
    [
      "does nothing while the chain cannot be read",
      row("settled"),
      [DONE, UNAVAILABLE, DONE],
      "take settled → look → release → done",
    ],
    ["stops when another process was faster", row("settling"), [LOST], "take settling → done"],
  ])("%s", (...[_, known, outcomes, expected]) => expect(story(resolve(known), ...outcomes)).toBe(expected));
});

describe("a fulfilled payment is watched until its settlement is final", () => {
  const moved = { ...PAID, settlement: ELSEWHERE } as const;
  test.each<[string, readonly StepEvent[], string]>([
    ["not final yet", [DONE, chain(PAID), DONE], "take fulfilled → look → release → done"],
    ["final", [DONE, chain(FINAL), DONE], "take fulfilled → look → write fulfilled final → done"],
    [
      "moved to another block",
      [DONE, chain(moved), DONE, DONE],
      "take fulfilled → look → write fulfilled → release → done",
    ],
    [
      "vanished, still valid: submitted again",
      [DONE, chain(UNUSED), SUBMITTED, chain(PAID), DONE],
      "take fulfilled → look → submit → look → release → done",
    ],
    [
      "vanished, submitted in vain",
      [DONE, chain(UNUSED), SUBMITTED, chain(UNUSED), DONE],
      "take fulfilled → look → submit → look → release → done",
    ],
    [
      "vanished, window closed, not final",
      [DONE, chain(UNUSED, false), DONE],
      "take fulfilled → look → release → done",
    ],
    ["vanished, then mined without settling", [DONE, chain(REVERTED), DONE], "take fulfilled → look → release → done"],
    ["nonce spent elsewhere, not final", [DONE, chain(SPENT), DONE], "take fulfilled → look → release → done"],
    ["gone at a final block", [DONE, chain(EXPIRED), DONE], "take fulfilled → look → write void reversed → done"],
    [
      "spent elsewhere at a final block",
      [DONE, chain(BURNT), DONE],
      "take fulfilled → look → write void reversed → done",
    ],
  ])("%s", (_, outcomes, expected) => expect(story(resolve(row("fulfilled")), ...outcomes)).toBe(expected));

  test("a move is stored with its new place", () =>
    expect(play(resolve(row("fulfilled")), DONE, chain(moved)).at(-1)).toMatchObject({ settlement: ELSEWHERE }));
});
