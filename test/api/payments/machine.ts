import { START, step } from "../../../api/payments/step.ts";
import type { Arrival, Command, Row, State, StepEvent } from "../../../api/payments/step-types.ts";
import type { Settlement, View } from "../../../api/platform/chain/view.ts";
import type { StoredAnswer } from "../../../api/platform/http/answer.ts";

/** Fixtures for tests of the payment state machine. */

export const SETTLEMENT: Settlement = {
  transaction: `0x${"11".repeat(32)}`,
  block: 7,
  blockHash: `0x${"77".repeat(32)}`,
  logIndex: 3,
};
export const ELSEWHERE: Settlement = { ...SETTLEMENT, transaction: `0x${"22".repeat(32)}`, block: 8 };
export const RESPONSE: StoredAnswer = { status: 200, body: Buffer.from("{}"), location: "/cert/0123456789abcdef" };

export const PAID: View = { nonce: "paid", settlement: SETTLEMENT, final: false };
export const FINAL: View = { ...PAID, final: true };
export const UNUSED: View = { nonce: "unused" };
export const SPENT: View = { nonce: "spent" };
export const EXPIRED: View = { nonce: "dead", reason: "expired" };
export const REVERTED: View = { nonce: "reverted", transaction: `0x${"33".repeat(32)}` };
export const CONSUMED: View = { nonce: "dead", reason: "nonce_consumed" };

/** Returns a journal row in the given state, with an expired lease unless `change` overrides it. */
export function row(state: State, change: Partial<Row> = {}): Row {
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

export const request = (change: Partial<Arrival> = {}): Arrival => ({
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

export const resolve = (known: Row): StepEvent => ({ type: "resolve", row: known });

export const DONE: StepEvent = { type: "written", rows: 1 };
export const LOST: StepEvent = { type: "written", rows: 0 };
export const CROWDED: StepEvent = { type: "crowded" };
export const BARRED: StepEvent = { type: "barred", seconds: 60 };
export const UNAVAILABLE: StepEvent = { type: "unavailable" };
export const OK: StepEvent = { type: "preflight", outcome: "ok", windowOpen: true };
export const REFUSED: StepEvent = { type: "preflight", outcome: "refused", error: "The balance is too low." };
export const SUBMITTED: StepEvent = { type: "submitted" };
export const HANDLED: StepEvent = { type: "handled" };
export const COMPLETED: StepEvent = { type: "completed", response: RESPONSE };
export const HANDLE_FAILED: StepEvent = { type: "handleFailed" };
export const chain = (view: View, windowOpen = true): StepEvent => ({ type: "chain", view, windowOpen });

/** Returns every command of the machine for these outcomes. */
export function play(first: StepEvent, ...outcomes: readonly StepEvent[]): Command[] {
  let decision = step(START, first);
  const commands = [decision.command];
  for (const outcome of outcomes) {
    decision = step(decision.run, outcome);
    commands.push(decision.command);
  }
  return commands;
}

/** Returns the commands of `play` in short form, such as `take settled → look → wait held`. */
export const story = (first: StepEvent, ...outcomes: readonly StepEvent[]): string =>
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
