import { describe, expect, test } from "vitest";
import type { Row, StepEvent } from "../../../api/payments/step-types.ts";
import {
  BARRED,
  COMPLETED,
  CONSUMED,
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

describe("A payment that is not in the journal", () => {
  test("A new payment is stored, simulated, marked as settling, submitted, looked up, handled, and answered, in this order", () =>
    expect(story(request(), DONE, OK, DONE, SUBMITTED, chain(PAID), HANDLED, COMPLETED)).toBe(
      "insert → preflight → write settling → submit → look → handle → complete → result",
    ));

  test("A new payment with a wrong signature gets 402 and is not stored", () =>
    expect(story(request({ signature: "invalid" }))).toBe("pay"));

  test("A new payment with mismatched terms gets 402 for that reason, whatever its signature", () => {
    const fresh = { type: "pay", error: "too little" } as const;
    expect(play(request({ fresh }))).toEqual([{ type: "answer", answer: fresh }]);
    expect(play(request({ fresh, signature: "invalid" }))).toEqual([{ type: "answer", answer: fresh }]);
  });

  test.each([
    { what: "malformed", status: 400 },
    { what: "unacceptable", status: 422 },
  ] as const)(
    "A new payment with a $what body gets $status before any money moves, and only if the signature is valid",
    ({ what }) => {
      const fresh = { type: what, detail: "wrong" };
      expect(story(request({ fresh }))).toBe(what);
      expect(story(request({ fresh, signature: "invalid" }))).toBe("pay");
    },
  );

  test("A payment that the chain shows as paid after its window closed is accepted and never submitted", () => {
    const paid = request({ fresh: "paid" });
    expect(story(paid, DONE, DONE, chain(PAID, false), HANDLED, COMPLETED)).toBe(
      "insert → write settling → look → handle → complete → result",
    );
    expect(story(paid, DONE, DONE, chain(UNUSED, false), DONE)).toMatch(/look → release → wait unsettled$/);
    expect(story(request({ fresh: "paid", signature: "invalid" }))).toBe("pay");
  });

  test("A payer with too many payments in flight gets `crowded`, for a new payment and for an abandoned one", () => {
    expect(story(request(), CROWDED)).toBe("insert → wait crowded");
    expect(story(request({ row: row("received") }), CROWDED)).toBe("take received → wait crowded");
  });

  test("A payer whose payments failed too often gets `barred` with a wait, for a new payment and for an abandoned one", () => {
    expect(play(request(), BARRED).at(-1)).toEqual({ type: "answer", answer: { type: "barred", seconds: 60 } });
    expect(story(request({ row: row("received") }), BARRED)).toBe("take received → barred");
  });

  test("A new payment takes over the identifier of an abandoned payment", () => {
    const held = request({ sameId: row("received", { fingerprint: "f2" }), paymentId: "X" });
    expect(story(held, DONE, DONE, OK)).toBe("free → insert → preflight → write settling");
    expect(story(held, LOST)).toBe("free → wait held");
    expect(story({ ...held, fresh: { type: "pay", error: "too little" } })).toBe("pay");
  });

  test("A payment that a concurrent request has stored waits for that request", () =>
    expect(story(request(), LOST)).toBe("insert → wait held"));
});

/** The table "Answers": a journal row, a request, and the steps until the first answer. */
describe("The same payment sent again", () => {
  test.each<[string, Row, readonly StepEvent[], string]>([
    ["received, in work", live("received"), [], "wait held"],
    [
      "received, abandoned, valid when checked again",
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
      "settling, abandoned, unused, window open, submitted again",
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
      "settling, submitted again without effect",
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
      "settling, nonce consumed at a final block",
      row("settling"),
      [DONE, chain(CONSUMED), DONE],
      "take settling → look → write void nonce_consumed → pay",
    ],
    ["settled, in work, reported as charged", live("settled"), [], "wait held charged"],
    [
      "settled, abandoned, looked up again and handled",
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
    ["void, nonce consumed", row("void", { reason: "nonce_consumed" }), [], "pay"],
    ["void, reversed", row("void", { reason: "reversed" }), [], "pay"],
  ])("A payment with this history gets the table's answer: %s", (...[_, known, outcomes, expected]) =>
    expect(story(request({ row: known }), ...outcomes)).toBe(expected),
  );

  test("A replay returns the stored response with the settlement that the chain shows", () =>
    expect(play(request({ row: row("fulfilled") }))).toEqual([
      { type: "answer", answer: { type: "result", response: RESPONSE, settlement: SETTLEMENT, replay: true } },
    ]));
});

const STATES = ["received", "settling", "settled", "fulfilled", "void"] as const;

describe.each(STATES)("A payment that is %s", (state) => {
  test.each([true, false])("A different request with the same payment is a conflict (live lease: %s)", (leaseLive) => {
    const known = row(state, { leaseLive });
    expect(story(request({ row: known, fingerprint: "f2" }))).toBe("conflict");
  });

  test("The same nonce signed for other terms is a conflict", () =>
    expect(story(request({ row: row(state), digest: "0xd2" }))).toBe("conflict"));

  test(`A wrong signature gets ${state === "void" ? 402 : 400}, for the same request and for another one`, () => {
    const expected = state === "void" ? "pay" : "malformed";
    for (const fingerprint of ["f1", "f2"])
      for (const digest of ["0xd1", "0xd2"])
        expect(story(request({ row: row(state), signature: "invalid", fingerprint, digest }))).toBe(expected);
  });
});

describe("The same payment identifier with a fresh signature", () => {
  test.each([
    ["received", "wait held"],
    ["settling", "wait held"],
    ["settled", "wait held charged"],
    ["fulfilled", "replay"],
  ] as const)("A fresh signature for a payment that is %s is never stored or submitted", (state, expected) => {
    for (const leaseLive of state === "received" ? [true] : [true, false]) {
      const sameId = row(state, { leaseLive, paymentId: "id" });
      expect(story(request({ sameId, digest: "0xd2", paymentId: "id" }))).toBe(expected);
    }
  });

  test("A fresh signature with a different request is a conflict", () => {
    for (const state of ["received", "settling", "settled", "fulfilled"] as const) {
      const sameId = row(state, { leaseLive: true, paymentId: "id" });
      expect(story(request({ sameId, digest: "0xd2", paymentId: "id", fingerprint: "f2" }))).toBe("conflict");
    }
  });

  test("A wrong signature gets 402", () => {
    const sameId = row("fulfilled", { paymentId: "id" });
    expect(story(request({ sameId, digest: "0xd2", paymentId: "id", signature: "invalid" }))).toBe("pay");
  });
});

describe("A payment made under an identifier", () => {
  const made = (state: Row["state"]) => row(state, { paymentId: "id" });
  test.each(["received", "settling", "settled", "fulfilled"] as const)(
    "A payment that is %s is refused without its identifier",
    (state) => {
      expect(story(request({ row: made(state) }))).toBe("conflict");
      expect(story(request({ row: made(state), paymentId: "other" }))).toBe("conflict");
    },
  );

  test("A payment made under an identifier replays with it", () =>
    expect(story(request({ row: made("fulfilled"), paymentId: "id" }))).toBe("replay"));

  test("A payment made without an identifier replays with and without one", () => {
    expect(story(request({ row: row("fulfilled"), paymentId: "id" }))).toBe("replay");
    expect(story(request({ row: row("fulfilled") }))).toBe("replay");
  });
});

test("A signed bait replays its answer without a settlement", () => {
  const bait = row("fulfilled", { reason: "bait", settlement: null });
  expect(play(request({ row: bait }))).toEqual([
    { type: "answer", answer: { type: "result", response: RESPONSE, settlement: null, replay: true } },
  ]);
  expect(story(request({ row: bait, fingerprint: "f2" }))).toBe("conflict");
});
