import { describe, expect, test } from "vitest";
import type { Row, StepEvent } from "../../../api/payments/step-types.ts";
import {
  COMPLETED,
  CONSUMED,
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

describe("The resolver", () => {
  test.each<[string, Row]>([
    ["received", row("received")],
    ["void", row("void")],
    ["fulfilled and final", row("fulfilled", { final: true })],
    ["a bait", row("fulfilled", { reason: "bait", settlement: null })],
    ["settling with a live lease", row("settling", { leaseLive: true })],
    ["settled with a live lease", row("settled", { leaseLive: true })],
    ["fulfilled with a live lease", row("fulfilled", { leaseLive: true })],
  ])("The resolver leaves a payment alone that is %s", (_, known) => expect(story(resolve(known))).toBe("done"));

  test.each<[string, Row, readonly StepEvent[], string]>([
    [
      "handles a paid payment",
      row("settling"),
      [DONE, chain(PAID), HANDLED, COMPLETED],
      "take settling → look → handle → complete → done",
    ],
    [
      "gives up a payment that was mined and reverted",
      row("settling"),
      [DONE, chain(REVERTED), DONE],
      "take settling → look → write void reverted → done",
    ],
    [
      "never submits a payment that is not retried",
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
      "gives up a payment that is dead at a final block",
      row("settling"),
      [DONE, chain(EXPIRED), DONE],
      "take settling → look → write void expired → done",
    ],
    [
      "looks up a settled payment again, then handles it",
      row("settled"),
      [DONE, chain(PAID), HANDLED, COMPLETED],
      "take settled → look → handle → complete → done",
    ],
    [
      "moves a vanished payment back to settling without submitting it",
      row("settled"),
      [DONE, chain(UNUSED), DONE, DONE],
      "take settled → look → write settling → release → done",
    ],
    [
      "retries a failing handler later",
      row("settled"),
      [DONE, chain(PAID), HANDLE_FAILED, DONE, DONE],
      "take settled → look → handle → write settled → release failed → done",
    ],
    [
      "only releases its lease while the chain is unreachable",
      row("settled"),
      [DONE, UNAVAILABLE, DONE],
      "take settled → look → release → done",
    ],
    ["stops if another process took the payment first", row("settling"), [LOST], "take settling → done"],
  ])("The resolver %s", (...[_, known, outcomes, expected]) =>
    expect(story(resolve(known), ...outcomes)).toBe(expected),
  );
});

describe("A fulfilled payment whose settlement is not final", () => {
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
      "vanished, still valid, submitted again",
      [DONE, chain(UNUSED), SUBMITTED, chain(PAID), DONE],
      "take fulfilled → look → submit → look → release → done",
    ],
    [
      "vanished, submitted without effect",
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
      [DONE, chain(CONSUMED), DONE],
      "take fulfilled → look → write void reversed → done",
    ],
  ])("A fulfilled payment with this settlement takes the table's steps: %s", (_, outcomes, expected) =>
    expect(story(resolve(row("fulfilled")), ...outcomes)).toBe(expected),
  );

  test("A moved settlement is stored with its new block", () =>
    expect(play(resolve(row("fulfilled")), DONE, chain(moved)).at(-1)).toMatchObject({ settlement: ELSEWHERE }));
});
