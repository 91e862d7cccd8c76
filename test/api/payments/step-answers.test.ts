import { describe, expect, test } from "vitest";
import type { Row, StepEvent } from "../../../api/payments/step-types.ts";
import {
  BARRED,
  BURNT,
  COMPLETED,
  CROWDED,
  chain,
  DONE,
  EXPIRED,
  HANDLED,
  LOST,
  OK,
  PAID,
  play,
  REFUSED,
  RESPONSE,
  request,
  row,
  SETTLEMENT,
  SPENT,
  SUBMITTED,
  story,
  UNUSED,
} from "./machine.ts";

const live = (state: Row["state"]) => row(state, { leaseLive: true });

describe("a payment that is not in the journal", () => {
  test("is processed: stored, simulated, marked before it leaves, submitted, looked for, handled, answered", () =>
    expect(story(request(), DONE, OK, DONE, SUBMITTED, chain(PAID), HANDLED, COMPLETED)).toBe(
      "insert → preflight → write settling → submit → look → handle → complete → result",
    ));

  test("with a wrong signature is 402, and nothing is stored", () =>
    expect(story(request({ signature: "invalid" }))).toBe("pay"));

  test("with terms that do not match is 402 for that reason, whatever its signature", () => {
    const fresh = { type: "pay", error: "too little" } as const;
    expect(play(request({ fresh }))).toEqual([{ type: "answer", answer: fresh }]);
    expect(play(request({ fresh, signature: "invalid" }))).toEqual([{ type: "answer", answer: fresh }]);
  });

  test.each([
    { what: "malformed", status: 400 },
    { what: "unacceptable", status: 422 },
  ] as const)("with a $what body is $status before any money moves, and only if the signature is right", ({ what }) => {
    const fresh = { type: what, detail: "wrong" };
    expect(story(request({ fresh }))).toBe(what);
    expect(story(request({ fresh, signature: "invalid" }))).toBe("pay");
  });

  test("whose window is closed, and that the chain shows paid, is taken in and never submitted", () => {
    const paid = request({ fresh: "paid" });
    expect(story(paid, DONE, DONE, chain(PAID, false), HANDLED, COMPLETED)).toBe(
      "insert → write settling → look → handle → complete → result",
    );
    expect(story(paid, DONE, DONE, chain(UNUSED, false), DONE)).toMatch(/look → release → wait unsettled$/);
    expect(story(request({ fresh: "paid", signature: "invalid" }))).toBe("pay");
  });

  test("of a payer with too many in flight is turned away, and so is an abandoned one that is taken up again", () => {
    expect(story(request(), CROWDED)).toBe("insert → wait crowded");
    expect(story(request({ row: row("received") }), CROWDED)).toBe("take received → wait crowded");
  });

  test("of a payer whose payments have failed too often is turned away likewise, for so long", () => {
    expect(play(request(), BARRED).at(-1)).toEqual({ type: "answer", answer: { type: "barred", seconds: 60 } });
    expect(story(request({ row: row("received") }), BARRED)).toBe("take received → barred");
  });

  test("whose identifier an abandoned payment holds takes its place", () => {
    const held = request({ sameId: row("received", { fingerprint: "f2" }), paymentId: "X" });
    expect(story(held, DONE, DONE, OK)).toBe("free → insert → preflight → write settling");
    expect(story(held, LOST)).toBe("free → wait held");
    expect(story({ ...held, fresh: { type: "pay", error: "too little" } })).toBe("pay");
  });

  test("that another request stores at the same time waits for that one", () =>
    expect(story(request(), LOST)).toBe("insert → wait held"));
});

/** The table "Answers": a row of the journal, the request, and what happens until the first answer. */
describe("the same payment again", () => {
  test.each<[string, Row, readonly StepEvent[], string]>([
    ["received, in work", live("received"), [], "wait held"],
    [
      "received, abandoned: checked again",
      row("received"),
      [DONE, OK, DONE],
      "take received → preflight → write settling → submit",
    ],
    [
      "received, abandoned, now refused",
      row("received"),
      [DONE, REFUSED, DONE],
      "take received → preflight → write void refused → pay",
    ],
    ["settling, in work", live("settling"), [], "wait held"],
    ["settling, abandoned, paid meanwhile", row("settling"), [DONE, chain(PAID)], "take settling → look → handle"],
    [
      "settling, abandoned, unused, window open: submitted again",
      row("settling"),
      [DONE, chain(UNUSED), SUBMITTED, chain(PAID)],
      "take settling → look → submit → look → handle",
    ],
    [
      "settling, abandoned, unused, window closed",
      row("settling"),
      [DONE, chain(UNUSED, false), DONE],
      "take settling → look → release → wait unsettled",
    ],
    [
      "settling, submitted again in vain",
      row("settling"),
      [DONE, chain(UNUSED), SUBMITTED, chain(UNUSED), DONE],
      "take settling → look → submit → look → release → wait unsettled",
    ],
    [
      "settling, nonce spent elsewhere, not final",
      row("settling"),
      [DONE, chain(SPENT), DONE],
      "take settling → look → release → wait unsettled",
    ],
    [
      "settling, expired at a final block",
      row("settling"),
      [DONE, chain(EXPIRED), DONE],
      "take settling → look → write void expired → pay",
    ],
    [
      "settling, burnt at a final block",
      row("settling"),
      [DONE, chain(BURNT), DONE],
      "take settling → look → write void nonce_consumed → pay",
    ],
    ["settled, in work: says that it is charged", live("settled"), [], "wait held charged"],
    [
      "settled, abandoned: looked at again, handled",
      row("settled"),
      [DONE, chain(PAID)],
      "take settled → look → handle",
    ],
    [
      "settled, vanished, window open",
      row("settled"),
      [DONE, chain(UNUSED), DONE, SUBMITTED],
      "take settled → look → write settling → submit → look",
    ],
    [
      "settled, vanished, window closed",
      row("settled"),
      [DONE, chain(UNUSED, false), DONE, DONE],
      "take settled → look → write settling → release → wait unsettled",
    ],
    [
      "settled, vanished for good",
      row("settled"),
      [DONE, chain(EXPIRED), DONE],
      "take settled → look → write void expired → pay",
    ],
    ["fulfilled", row("fulfilled"), [], "replay"],
    ["fulfilled, while its settlement is watched", live("fulfilled"), [], "replay"],
    ["void, refused, and the chain agrees", row("void"), [chain(UNUSED)], "look → pay"],
    [
      "void, refused, but the chain shows it paid",
      row("void"),
      [chain(PAID), DONE, DONE],
      "look → revive → write settled → handle",
    ],
    ["void, expired", row("void", { reason: "expired" }), [], "pay"],
    ["void, burnt", row("void", { reason: "nonce_consumed" }), [], "pay"],
    ["void, reversed", row("void", { reason: "reversed" }), [], "pay"],
  ])("%s", (...[_, known, outcomes, expected]) => expect(story(request({ row: known }), ...outcomes)).toBe(expected));

  test("a replay is the stored response with the settlement that the chain shows", () =>
    expect(play(request({ row: row("fulfilled") }))).toEqual([
      { type: "answer", answer: { type: "result", response: RESPONSE, settlement: SETTLEMENT, replay: true } },
    ]));
});

const STATES = ["received", "settling", "settled", "fulfilled", "void"] as const;

describe.each(STATES)("a payment that is %s", (state) => {
  test.each([true, false])("with another request is a conflict (live lease: %s)", (leaseLive) => {
    const known = row(state, { leaseLive });
    expect(story(request({ row: known, fingerprint: "f2" }))).toBe("conflict");
  });

  test("whose nonce was signed for other terms is a conflict", () =>
    expect(story(request({ row: row(state), digest: "0xd2" }))).toBe("conflict"));

  test(`with a wrong signature is ${state === "void" ? 402 : 400}, for its own request and for another`, () => {
    const expected = state === "void" ? "pay" : "malformed";
    for (const fingerprint of ["f1", "f2"])
      for (const digest of ["0xd1", "0xd2"])
        expect(story(request({ row: row(state), signature: "invalid", fingerprint, digest }))).toBe(expected);
  });
});

describe("the same payment identifier with a fresh signature", () => {
  test.each([
    ["received", "wait held"],
    ["settling", "wait held"],
    ["settled", "wait held charged"],
    ["fulfilled", "replay"],
  ] as const)("of a payment that is %s is never stored or submitted", (state, expected) => {
    for (const leaseLive of state === "received" ? [true] : [true, false]) {
      const sameId = row(state, { leaseLive, paymentId: "id" });
      expect(story(request({ sameId, digest: "0xd2", paymentId: "id" }))).toBe(expected);
    }
  });

  test("and another request is a conflict", () => {
    for (const state of ["received", "settling", "settled", "fulfilled"] as const) {
      const sameId = row(state, { leaseLive: true, paymentId: "id" });
      expect(story(request({ sameId, digest: "0xd2", paymentId: "id", fingerprint: "f2" }))).toBe("conflict");
    }
  });

  test("is 402 when that signature is wrong", () => {
    const sameId = row("fulfilled", { paymentId: "id" });
    expect(story(request({ sameId, digest: "0xd2", paymentId: "id", signature: "invalid" }))).toBe("pay");
  });
});

describe("a payment that was made under an identifier", () => {
  const made = (state: Row["state"]) => row(state, { paymentId: "id" });
  test.each(["received", "settling", "settled", "fulfilled"] as const)("and is %s is refused without it", (state) => {
    expect(story(request({ row: made(state) }))).toBe("conflict");
    expect(story(request({ row: made(state), paymentId: "other" }))).toBe("conflict");
  });

  test("replays with it", () => expect(story(request({ row: made("fulfilled"), paymentId: "id" }))).toBe("replay"));

  test("and one made without it replays with and without", () => {
    expect(story(request({ row: row("fulfilled"), paymentId: "id" }))).toBe("replay");
    expect(story(request({ row: row("fulfilled") }))).toBe("replay");
  });
});

test("a signed bait replays its answer, which names no settlement", () => {
  const bait = row("fulfilled", { reason: "bait", settlement: null });
  expect(play(request({ row: bait }))).toEqual([
    { type: "answer", answer: { type: "result", response: RESPONSE, settlement: null, replay: true } },
  ]);
  expect(story(request({ row: bait, fingerprint: "f2" }))).toBe("conflict");
});
