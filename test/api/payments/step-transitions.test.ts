import { describe, expect, test } from "vitest";
import type { Row, State, StepEvent } from "../../../api/payments/step-types.ts";
import {
  ALREADY_PAID,
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
  NOT_AT_ONCE,
  OK,
  PAID,
  play,
  REFUSED,
  RESPONSE,
  REVERTED,
  request,
  resolve,
  row,
  SETTLEMENT,
  SPENT,
  SUBMITTED,
  story,
  UNACKNOWLEDGED,
  UNAVAILABLE,
  UNUSED,
} from "./machine.ts";

describe("a new payment", () => {
  test("that the token refuses is void before it leaves us", () =>
    expect(story(request(), DONE, REFUSED, DONE)).toBe("insert → preflight → write void refused → pay"));

  test("that somebody has already broadcast is looked for, never submitted", () =>
    expect(story(request(), DONE, ALREADY_PAID, DONE, chain(PAID))).toBe(
      "insert → preflight → write settling → look → handle",
    ));

  test("is not submitted while the mark that it may leave us is not acknowledged", () => {
    expect(story(request(), DONE, OK, UNACKNOWLEDGED)).toMatch(/write settling → wait unavailable$/);
    expect(story(request(), DONE, OK, LOST)).toMatch(/write settling → wait held$/);
  });

  test("stays in the journal when the chain cannot be read", () =>
    expect(story(request(), DONE, UNAVAILABLE, DONE)).toBe("insert → preflight → release → wait unavailable"));

  test("is settled as the chain shows it, not as anyone reports it", () =>
    expect(play(request(), DONE, OK, DONE, SUBMITTED, chain(PAID)).at(-1)).toEqual({
      type: "handle",
      settlement: SETTLEMENT,
      noted: false,
    }));
});

const AT_ONCE = [DONE, OK, DONE, SUBMITTED, chain(PAID)] as const;
const STORED_FIRST = [...AT_ONCE, NOT_AT_ONCE, DONE] as const;

test("a sale that is not made at once is made when its settlement is stored", () => {
  const stored = { type: "write", from: ["settling", "settled"], to: "settled", settlement: SETTLEMENT };
  expect(play(request(), ...STORED_FIRST, HANDLED).slice(-4)).toEqual([
    { type: "handle", settlement: SETTLEMENT, noted: false },
    stored,
    { type: "handle", settlement: SETTLEMENT, noted: true },
    { type: "complete", settlement: null },
  ]);
});

test("a sale that is made at once is stored with its settlement", () =>
  expect(play(request(), ...AT_ONCE, HANDLED).at(-1)).toEqual({ type: "complete", settlement: SETTLEMENT }));

describe.each([
  { when: "at once", settled: AT_ONCE, stored: "write settled → ", storing: [DONE] },
  { when: "with its settlement stored first", settled: STORED_FIRST, stored: "", storing: [] },
])("a settled payment, sold $when", ({ settled, stored, storing }) => {
  test("whose handler fails stays settled, is counted, and its payer is told of the charge", () =>
    expect(story(request(), ...settled, HANDLE_FAILED, ...storing, DONE)).toMatch(
      new RegExp(`handle → ${stored}release failed → wait failed charged$`),
    ));

  test("is completed with its record in one transaction, whose answer it gets", () => {
    expect(story(request(), ...settled, HANDLED, COMPLETED)).toMatch(/handle → complete → result$/);
    expect(play(request(), ...settled, HANDLED, COMPLETED).at(-1)).toMatchObject({ answer: { response: RESPONSE } });
  });

  test("whose record fails stays settled, is counted, and its payer is told that he was charged", () =>
    expect(story(request(), ...settled, HANDLED, HANDLE_FAILED, ...storing, DONE)).toMatch(
      new RegExp(`complete → ${stored}release failed → wait failed charged$`),
    ));

  test.each([
    ["another process took over", LOST, "wait held"],
    ["its commit was not acknowledged", UNACKNOWLEDGED, "wait unavailable charged"],
  ])("shows no result when %s", (_, outcome, expected) =>
    expect(
      story(request(), ...settled, HANDLED, outcome)
        .split(" → ")
        .at(-1),
    ).toBe(expected),
  );

  test("that cannot be looked at again says that it was charged", () =>
    expect(story(request({ row: row("settled") }), DONE, UNAVAILABLE, DONE)).toBe(
      "take settled → look → release → wait unavailable charged",
    ));
});

describe("a run that has lost its lease decides nothing", () => {
  test.each<[string, StepEvent, readonly StepEvent[]]>([
    ["while taking", request({ row: row("settling") }), [LOST]],
    ["before settling", request(), [DONE, OK, LOST]],
    ["before a refusal", request(), [DONE, REFUSED, LOST]],
    ["before settled", request(), [DONE, OK, DONE, SUBMITTED, chain(PAID), NOT_AT_ONCE, LOST]],
    ["before void", request({ row: row("settling") }), [DONE, chain(EXPIRED), LOST]],
    ["before going back to settling", request({ row: row("settled") }), [DONE, chain(UNUSED), LOST]],
    ["before fulfilled", request({ row: row("settled") }), [DONE, chain(PAID), HANDLED, LOST]],
    ["before a revival", request({ row: row("void") }), [chain(PAID), LOST]],
  ])("%s", (_, first, outcomes) => expect(story(first, ...outcomes)).toMatch(/wait held$/));
});

describe.each(["refused", "reverted"] as const)("a %s payment that the chain shows paid to us", (reason) => {
  const known = row("void", { reason });

  test("is fulfilled after all", () =>
    expect(story(request({ row: known }), chain(PAID), DONE, DONE, HANDLED, COMPLETED)).toBe(
      "look → revive → write settled → handle → complete → result",
    ));

  test.each([UNUSED, SPENT, REVERTED, EXPIRED, BURNT])(`but with the nonce $nonce stays ${reason}`, (view) =>
    expect(story(request({ row: known }), chain(view))).toBe("look → pay"),
  );

  test("waits while the chain cannot be read", () =>
    expect(story(request({ row: known }), UNAVAILABLE)).toBe("look → wait unavailable"));
});

describe("a payment that was mined without settling", () => {
  test("is void: its payer is told that it is never submitted again", () => {
    const outcomes = [DONE, OK, DONE, SUBMITTED, chain(REVERTED), DONE];
    expect(story(request(), ...outcomes)).toMatch(/submit → look → write void reverted → pay$/);
    expect(play(request(), ...outcomes).at(-1)).toMatchObject({
      answer: { error: expect.stringMatching(/mined and reverted, so we never submit it again/) },
    });
  });

  test.each(["settling", "settled"] as const)("is void from %s as well, however open its window is", (state) =>
    expect(story(request({ row: row(state) }), DONE, chain(REVERTED), DONE)).toBe(
      `take ${state} → look → write void reverted → pay`,
    ),
  );

  test("and is told so each time, with the same reason", () => {
    const [, last] = play(request({ row: row("void", { reason: "reverted" }) }), chain(UNUSED));
    expect(last).toMatchObject({ answer: { type: "pay", error: expect.stringMatching(/reverted/) } });
  });

  test("is never submitted, should it settle and its settlement be gone again", () => {
    const later = (state: State) => request({ row: row(state, { revived: true }) });
    expect(story(later("settling"), DONE, chain(UNUSED), DONE)).toBe("take settling → look → release → wait unsettled");
    expect(story(later("settled"), DONE, chain(UNUSED), DONE, DONE)).toBe(
      "take settled → look → write settling → release → wait unsettled",
    );
    expect(story(resolve(row("fulfilled", { revived: true })), DONE, chain(UNUSED), DONE)).not.toMatch(/submit/);
  });
});

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
