import { describe, expect, test } from "vitest";
import { START, step } from "../../../api/payments/step.ts";
import type { Arrival, Command, Row, State, StepEvent } from "../../../api/payments/step-types.ts";
import type { Settlement, View } from "../../../api/platform/chain/view.ts";
import type { StoredAnswer } from "../../../api/platform/http/answer.ts";

const SETTLEMENT: Settlement = {
  transaction: `0x${"11".repeat(32)}`,
  block: 7,
  blockHash: `0x${"77".repeat(32)}`,
  logIndex: 3,
};
const ELSEWHERE: Settlement = { ...SETTLEMENT, transaction: `0x${"22".repeat(32)}`, block: 8 };
const RESPONSE: StoredAnswer = { status: 200, body: Buffer.from("{}"), location: "/cert/0123456789abcdef" };

const PAID: View = { nonce: "paid", settlement: SETTLEMENT, final: false };
const FINAL: View = { ...PAID, final: true };
const UNUSED: View = { nonce: "unused" };
const SPENT: View = { nonce: "spent" };
const EXPIRED: View = { nonce: "dead", reason: "expired" };
const REVERTED: View = { nonce: "reverted", transaction: `0x${"33".repeat(32)}` };

/** Returns a journal row in the given state, with an expired lease unless `change` overrides it. */
function row(state: State, change: Partial<Row> = {}): Row {
  const settled = state === "settled" || state === "fulfilled";
  return {
    state,
    reason: state === "void" ? "refused" : null,
    digest: "0xd1",
    fingerprint: "f1",
    paymentId: null,
    leaseLive: false,
    settlement: settled ? SETTLEMENT : null,
    final: false,
    revived: false,
    refusal: null,
    response: state === "fulfilled" ? RESPONSE : null,
    ...change,
  };
}

const request = (change: Partial<Arrival> = {}): Arrival => ({
  type: "request",
  row: null,
  sameId: null,
  signature: "valid",
  digest: "0xd1",
  fingerprint: "f1",
  paymentId: null,
  fresh: "ok",
  ...change,
});

const resolve = (known: Row): StepEvent => ({ type: "resolve", row: known });

const DONE: StepEvent = { type: "written", rows: 1 };
const LOST: StepEvent = { type: "written", rows: 0 };
const CROWDED: StepEvent = { type: "crowded" };
const BARRED: StepEvent = { type: "barred", seconds: 60 };
const UNAVAILABLE: StepEvent = { type: "unavailable" };
const OK: StepEvent = { type: "preflight", outcome: "ok", windowOpen: true };
const REFUSED: StepEvent = { type: "preflight", outcome: "refused", error: "The balance is too low." };
const SUBMITTED: StepEvent = { type: "submitted" };
const HANDLED: StepEvent = { type: "handled" };
const COMPLETED: StepEvent = { type: "completed", response: RESPONSE };
const HANDLE_FAILED: StepEvent = { type: "handleFailed" };
const chain = (view: View, windowOpen = true): StepEvent => ({ type: "chain", view, windowOpen });

/** Returns every command of the machine for these outcomes. */
function play(first: StepEvent, ...outcomes: readonly StepEvent[]): Command[] {
  let decision = step(START, first);
  const commands = [decision.command];
  for (const outcome of outcomes) {
    decision = step(decision.run, outcome);
    commands.push(decision.command);
  }
  return commands;
}

/** Returns the commands of `play` in short form, such as `take settled → look → wait held`. */
const story = (first: StepEvent, ...outcomes: readonly StepEvent[]): string =>
  play(first, ...outcomes)
    .map(inShort)
    .join(" → ");

function inShort(command: Command): string {
  switch (command.type) {
    case "write":
      return ["write", command.to, command.reason, command.final && "final"].filter(Boolean).join(" ");
    case "take":
      return `take ${command.seen}`;
    case "release":
      return command.failed ? "release failed" : "release";
    case "answer": {
      const { answer } = command;
      if (answer.type === "wait") return `wait ${answer.because}${answer.charged ? " charged" : ""}`;
      if (answer.type === "result") return answer.replay ? "replay" : "result";
      return answer.type;
    }
    default:
      return command.type;
  }
}

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
    ["settled, in work, reported as charged", live("settled"), [], "wait held charged"],
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

describe("The resolver", () => {
  test.each<[string, Row]>([
    ["received", row("received")],
    ["void", row("void")],
    ["fulfilled and final", row("fulfilled", { final: true })],
    ["a bait", row("fulfilled", { reason: "bait", settlement: null })],
    ["settling with a live lease", row("settling", { leaseLive: true })],
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
      "vanished, window closed, not final",
      [DONE, chain(UNUSED, false), DONE],
      "take fulfilled → look → release → done",
    ],
    ["vanished, then mined without settling", [DONE, chain(REVERTED), DONE], "take fulfilled → look → release → done"],
    ["gone at a final block", [DONE, chain(EXPIRED), DONE], "take fulfilled → look → write void reversed → done"],
  ])("A fulfilled payment with this settlement takes the table's steps: %s", (_, outcomes, expected) =>
    expect(story(resolve(row("fulfilled")), ...outcomes)).toBe(expected),
  );

  test("A moved settlement is stored with its new block", () =>
    expect(play(resolve(row("fulfilled")), DONE, chain(moved)).at(-1)).toMatchObject({ settlement: ELSEWHERE }));
});
