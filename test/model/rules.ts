import { step } from "../../api/payments/step.ts";
import type { Command, Reason, Run, StepDecision, StepEvent } from "../../api/payments/step-types.ts";
import type { Explored } from "./shell.ts";
import { resultOf } from "./world.ts";
import type { WorldName } from "./worlds.ts";

/** A rule of the gate, the way to switch it off, and the promise that then breaks in a small world. */
export interface Rule {
  readonly rule: string;
  readonly world: WorldName;
  readonly breaks: number;
  readonly without: Partial<Pick<Explored, "step" | "off">>;
}

type Machine = typeof step;

/** Returns the machine with the decisions of `instead` where it returns one. */
const unless =
  (instead: (run: Run, event: StepEvent) => StepDecision | null): Machine =>
  (run, event) =>
    instead(run, event) ?? step(run, event);

/** Returns the machine with its decisions changed by `change`. */
const changing =
  (change: (decision: StepDecision) => StepDecision): Machine =>
  (run, event) =>
    change(step(run, event));

const go = (run: Run, command: Command, ...next: Command[]): StepDecision => ({
  run: { ...run, next },
  command,
});
const pay: Command = { type: "answer", answer: { type: "pay", error: "pay again" } };
const wait: Command = { type: "answer", answer: { type: "wait", charged: false, because: "held" } };
const done: Command = { type: "answer", answer: { type: "done" } };
const refuse: Command = { type: "write", from: ["settling", "settled"], to: "void", reason: "refused" };
const stop = (run: Run): StepDecision => go(run, run.job ? done : wait);

const facilitatorRefuses = unless((run, event) => (event.type === "submitted" ? go(run, refuse, pay) : null));

const facilitatorSettles = unless((run, event) => {
  if (event.type !== "submitted") return null;
  const settlement = { transaction: "0x1", block: 1, blockHash: "0x1", logIndex: 0 } as const;
  return go({ ...run, submitted: true, settlement }, { type: "handle", settlement, noted: false });
});

const closedWindowRefuses = unless((run, event) =>
  event.type === "chain" &&
  event.view.nonce === "unused" &&
  !event.windowOpen &&
  run.row?.state === "settling" &&
  !run.job
    ? go(run, refuse, pay)
    : null,
);

const backToReceived = unless((run, event) =>
  event.type === "chain" && event.view.nonce === "unused" && run.row?.state === "settling" && !run.job
    ? go(run, { type: "write", from: ["settling"], to: "received" }, { type: "preflight" })
    : null,
);

const minedIsUnused: Machine = (run, event) =>
  step(
    run,
    event.type === "chain" && event.view.nonce === "reverted" ? { ...event, view: { nonce: "unused" } } : event,
  );

const failureRefuses = unless((run, event) => (event.type === "handleFailed" ? go(run, refuse, pay) : null));

const leavesFirst = unless((run, event) => {
  if (event.type === "preflight" && event.outcome === "ok") return go(run, { type: "submit" });
  if (event.type !== "submitted" || run.row?.state === "settling") return null;
  return go({ ...run, submitted: true }, { type: "write", from: ["received"], to: "settling" }, { type: "look" });
});

const noTakeover = changing((decision) =>
  decision.command.type === "take" && decision.command.seen !== "fulfilled" ? stop(decision.run) : decision,
);

const noSecondLook = changing((decision) => {
  const settlement = decision.run.row?.settlement ?? null;
  return decision.command.type === "take" && decision.command.seen === "settled" && settlement !== null
    ? go({ ...decision.run, settlement }, decision.command, { type: "handle", settlement, noted: true })
    : decision;
});

const neverWatched = changing((decision) =>
  decision.command.type === "take" && decision.command.seen === "fulfilled" ? stop(decision.run) : decision,
);

/** Treats an abandoned payment as if a run were working on it. */
const neverFreed: Machine = (run, event) =>
  step(
    run,
    event.type === "request" && event.sameId ? { ...event, sameId: { ...event.sameId, leaseLive: true } } : event,
  );

const neverRevived = (reason: Reason): Machine =>
  changing((decision) => {
    const { row } = decision.run;
    const looksAgain = decision.command.type === "look" && row?.state === "void" && row.reason === reason;
    return looksAgain ? go(decision.run, pay) : decision;
  });

/** Ignores that a refusal may have been answered before the row was revived. */
const neverMarked: Machine = (run, event) =>
  step(
    run,
    (event.type === "request" || event.type === "resolve") && event.row
      ? ({ ...event, row: { ...event.row, revived: false } } as StepEvent)
      : event,
  );

const anySignature: Machine = (run, event) =>
  step(run, event.type === "request" && event.row !== null ? { ...event, signature: "valid" } : event);

const anyIdentifier: Machine = (run, event) =>
  step(run, event.type === "request" && event.row ? { ...event, paymentId: event.row.paymentId } : event);

const countless: Machine = (run, event) => step(run, event.type === "written" ? { ...event, rows: 1 } : event);

const trusting: Machine = (run, event) =>
  step(run, event.type === "writeUnknown" ? { type: "written", rows: 1 } : event);

export const RULES: readonly Rule[] = [
  {
    rule: "a known payment is looked up before anything is checked",
    world: "core",
    breaks: 1,
    without: { off: "checks-after-lookup" },
  },
  { rule: "the fingerprint covers the query", world: "routes", breaks: 3, without: { off: "whole-fingerprint" } },
  {
    rule: "a wrong signature is refused before the row is used",
    world: "forged",
    breaks: 6,
    without: { step: anySignature },
  },
  { rule: "a replay must bring its payment identifier", world: "reader", breaks: 6, without: { step: anyIdentifier } },
  { rule: "the key includes the nonce", world: "twoPayments", breaks: 7, without: { off: "nonce-in-key" } },
  {
    rule: "a row belongs to one authorization, not to an identifier",
    world: "identifier",
    breaks: 1,
    without: { off: "key-per-authorization" },
  },
  { rule: "an identifier is live once", world: "sameId", breaks: 3, without: { off: "one-live-identifier" } },
  { rule: "a void row frees its identifier", world: "sameId", breaks: 4, without: { off: "void-frees-identifier" } },
  {
    rule: "an abandoned payment that never left frees its identifier",
    world: "sameId",
    breaks: 4,
    without: { step: neverFreed },
  },
  {
    rule: "only an abandoned payment is removed",
    world: "sameId",
    breaks: 3,
    without: { off: "removed-if-abandoned" },
  },
  {
    rule: "another authorization under an identifier fits the terms",
    world: "misfit",
    breaks: 6,
    without: { off: "another-authorization-fits" },
  },
  {
    rule: "another authorization under an identifier is in its window",
    world: "sameId",
    breaks: 6,
    without: { off: "another-authorization-fits" },
  },
  {
    rule: "the number of a payer's payments in flight is limited",
    world: "crowd",
    breaks: 10,
    without: { off: "most-in-flight" },
  },
  {
    rule: "the balance covers all payments in flight together",
    world: "purse",
    breaks: 10,
    without: { off: "sum-is-covered" },
  },
  {
    rule: "only earlier payments count against a balance",
    world: "purseCalm",
    breaks: 10,
    without: { off: "earlier-ones-count" },
  },
  {
    rule: "a payment leaves while its lease is live",
    world: "purse",
    breaks: 10,
    without: { off: "leaves-with-a-live-lease" },
  },
  { rule: "we simulate the transfer ourselves", world: "preflight", breaks: 1, without: { off: "own-simulation" } },
  { rule: "a refusal is stored", world: "preflight", breaks: 1, without: { off: "refusal-is-kept" } },
  {
    rule: "a refused payment that was paid is revived",
    world: "revived",
    breaks: 4,
    without: { step: neverRevived("refused") },
  },
  {
    rule: "a revived payment is never submitted",
    world: "revivedReorg",
    breaks: 1,
    without: { step: neverMarked },
  },
  {
    rule: "one transaction is sent for an authorization, and none after it",
    world: "reverts",
    breaks: 9,
    without: { off: "submitted-once" },
  },
  {
    rule: "a payment mined without settling is over",
    world: "revertsForGood",
    breaks: 9,
    without: { step: minedIsUnused },
  },
  {
    rule: "a payment mined without settling and later paid is revived",
    world: "revived",
    breaks: 4,
    without: { step: neverRevived("reverted") },
  },
  {
    rule: "a failure counts only if the nonce is unused at its block",
    world: "reverts",
    breaks: 1,
    without: { off: "failure-at-its-block" },
  },
  {
    rule: "the window is checked again once the row exists",
    world: "time",
    breaks: 1,
    without: { off: "window-checked-again" },
  },
  {
    rule: "a closed window is refused only after a chain lookup",
    world: "restored",
    breaks: 1,
    without: { off: "closed-window-is-looked-at" },
  },
  {
    rule: "settling is committed before the signature leaves",
    world: "preflight",
    breaks: 1,
    without: { step: leavesFirst },
  },
  { rule: "settling never goes back to received", world: "preflight", breaks: 1, without: { step: backToReceived } },
  { rule: "a facilitator's failure decides nothing", world: "core", breaks: 1, without: { step: facilitatorRefuses } },
  { rule: "a facilitator's success decides nothing", world: "core", breaks: 2, without: { step: facilitatorSettles } },
  {
    rule: "an unused nonce in a closed window is not final",
    world: "core",
    breaks: 1,
    without: { step: closedWindowRefuses },
  },
  { rule: "only a final block expires a payment", world: "core", breaks: 1, without: { off: "final-block-expires" } },
  { rule: "only a final block burns a nonce", world: "reorgBurn", breaks: 1, without: { off: "final-block-burns" } },
  {
    rule: "the settlement is found by payer and nonce",
    world: "otherTransaction",
    breaks: 4,
    without: { off: "found-by-nonce" },
  },
  { rule: "a used nonce counts only with our transfer", world: "burn", breaks: 2, without: { off: "paired-transfer" } },
  { rule: "an abandoned payment is taken over", world: "core", breaks: 4, without: { step: noTakeover } },
  { rule: "every update is guarded by state and token", world: "core", breaks: 1, without: { off: "guard" } },
  {
    rule: "work is recorded in the guarded transaction",
    world: "core",
    breaks: 5,
    without: { off: "one-transaction" },
  },
  { rule: "an update of no row stops the run", world: "core", breaks: 1, without: { step: countless } },
  {
    rule: "an update that is not acknowledged stops the run",
    world: "preflight",
    breaks: 1,
    without: { step: trusting },
  },
  { rule: "a failing handler leaves the row settled", world: "core", breaks: 1, without: { step: failureRefuses } },
  {
    rule: "a settled row that is taken over is looked up again",
    world: "reorg",
    breaks: 2,
    without: { step: noSecondLook },
  },
  {
    rule: "a settlement is watched until it is final",
    world: "reorgAlone",
    breaks: 8,
    without: { step: neverWatched },
  },
];

/** Continues as if the settlement had been stored. */
const neverNoted = unless((run, event) =>
  event.type === "notImmediate" && run.settlement !== null
    ? go({ ...run, noted: true }, { type: "handle", settlement: run.settlement, noted: true })
    : null,
);

const withoutSettlement = changing((decision) =>
  decision.command.type === "complete" ? go(decision.run, { type: "complete", settlement: null }) : decision,
);

const toldFirst = unless((run, event) =>
  event.type === "handled" && !run.job
    ? go(run, {
        type: "answer",
        answer: { type: "result", response: resultOf("r1"), settlement: run.settlement, replay: false },
      })
    : null,
);

/** The rules for the time at which a sale is made and stored. */
export const SALE_RULES: readonly Rule[] = [
  {
    rule: "work with effects on others begins once its settlement is stored",
    world: "noticed",
    breaks: 11,
    without: { off: "settled-before-others-notice" },
  },
  {
    rule: "a delayed sale has its settlement stored",
    world: "noticed",
    breaks: 11,
    without: { step: neverNoted },
  },
  {
    rule: "an immediate sale is stored with its settlement",
    world: "immediate",
    breaks: 4,
    without: { step: withoutSettlement },
  },
  { rule: "a result is answered once it is stored", world: "immediate", breaks: 5, without: { step: toldFirst } },
];
