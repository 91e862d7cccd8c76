import { step } from "../../api/payments/step.ts";
import type { Command, Reason, Run, StepDecision, StepEvent } from "../../api/payments/step-types.ts";
import { type Off, resultOf } from "./world.ts";
import type { WorldName } from "./worlds.ts";

/** A rule of the gate, a small world and the promise that breaks there without it, and what switches the rule off. */
export type Rule = readonly [rule: string, world: WorldName, breaks: number, without: Off | Machine];

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

export const RULES: readonly Rule[] = [
  ["a known payment is looked up before anything is checked", "core", 1, "checks-after-lookup"],
  ["the fingerprint covers the query", "routes", 3, "whole-fingerprint"],
  ["a wrong signature is refused before the row is used", "forged", 6, anySignature],
  ["a replay must bring its payment identifier", "reader", 6, anyIdentifier],
  ["the key includes the nonce", "twoPayments", 7, "nonce-in-key"],
  ["a row belongs to one authorization, not to an identifier", "identifier", 1, "key-per-authorization"],
  ["an identifier is live once", "sameId", 3, "one-live-identifier"],
  ["a void row frees its identifier", "sameId", 4, "void-frees-identifier"],
  ["an abandoned payment that never left frees its identifier", "sameId", 4, neverFreed],
  ["only an abandoned payment is removed", "sameId", 3, "removed-if-abandoned"],
  ["another authorization under an identifier fits the terms", "misfit", 6, "another-authorization-fits"],
  ["another authorization under an identifier is in its window", "sameId", 6, "another-authorization-fits"],
  ["the number of a payer's payments in flight is limited", "crowd", 10, "most-in-flight"],
  ["the balance covers all payments in flight together", "purse", 10, "sum-is-covered"],
  ["only earlier payments count against a balance", "purseCalm", 10, "earlier-ones-count"],
  ["a payment leaves while its lease is live", "purse", 10, "leaves-with-a-live-lease"],
  ["we simulate the transfer ourselves", "preflight", 1, "own-simulation"],
  ["a refusal is stored", "preflight", 1, "refusal-is-kept"],
  ["a refused payment that was paid is revived", "revived", 4, neverRevived("refused")],
  ["a revived payment is never submitted", "revivedReorg", 1, neverMarked],
  ["one transaction is sent for an authorization, and none after it", "reverts", 9, "submitted-once"],
  ["a payment mined without settling is over", "revertsForGood", 9, minedIsUnused],
  ["a payment mined without settling and later paid is revived", "revived", 4, neverRevived("reverted")],
  ["a failure counts only if the nonce is unused at its block", "reverts", 1, "failure-at-its-block"],
  ["the window is checked again once the row exists", "time", 1, "window-checked-again"],
  ["a closed window is refused only after a chain lookup", "restored", 1, "closed-window-is-looked-at"],
  ["settling is committed before the signature leaves", "preflight", 1, leavesFirst],
  ["settling never goes back to received", "preflight", 1, backToReceived],
  ["a facilitator's failure decides nothing", "core", 1, facilitatorRefuses],
  ["a facilitator's success decides nothing", "core", 2, facilitatorSettles],
  ["an unused nonce in a closed window is not final", "core", 1, closedWindowRefuses],
  ["only a final block expires a payment", "core", 1, "final-block-expires"],
  ["only a final block burns a nonce", "reorgBurn", 1, "final-block-burns"],
  ["the settlement is found by payer and nonce", "otherTransaction", 4, "found-by-nonce"],
  ["a used nonce counts only with our transfer", "burn", 2, "paired-transfer"],
  ["an abandoned payment is taken over", "core", 4, noTakeover],
  ["every update is guarded by state and token", "core", 1, "guard"],
  ["work is recorded in the guarded transaction", "core", 5, "one-transaction"],
  ["an update of no row stops the run", "core", 1, countless],
  ["an update that is not acknowledged stops the run", "preflight", 1, trusting],
  ["a failing handler leaves the row settled", "core", 1, failureRefuses],
  ["a settled row that is taken over is looked up again", "reorg", 2, noSecondLook],
  ["a settlement is watched until it is final", "reorgAlone", 8, neverWatched],

  // The time at which a sale is made and stored.
  ["work with effects on others begins once its settlement is stored", "noticed", 11, "settled-before-others-notice"],
  ["a delayed sale has its settlement stored", "noticed", 11, neverNoted],
  ["an immediate sale is stored with its settlement", "immediate", 4, withoutSettlement],
  ["a result is answered once it is stored", "immediate", 5, toldFirst],

  // Settlement in batches.
  ["an authorization is a member of one transaction", "batchRace", 9, "one-member"],
  ["an authorization is a member of one transaction of any key", "batchKeys", 9, "member-of-any-key"],
  ["a batch carries only its members", "batchPair", 9, "only-members-are-carried"],
  ["a payment enters a batch only under a current lease", "batchLost", 1, "joined-to-its-lease"],
  ["a run that continues withdraws its queued payment", "batchLost", 1, "withdrawn"],
  ["a batch is broadcast after its commit is acknowledged", "batchRace", 9, "committed-before-broadcast"],
  ["any process broadcasts a stored batch", "batchRace", 4, "stored-is-broadcast"],
  ["a mined batch keeps its members", "batchRace", 9, "freed-when-lost"],
  ["members are freed once their nonce is finally taken", "batchLost", 9, "lost-at-a-final-block"],
  ["a batch counts as lost only after a second lookup", "batchFees", 9, "lost-is-looked-for-twice"],
  ["a replaced transaction is looked up under each hash", "batchFees", 9, "any-hash-is-looked-for"],
  ["a failure counts only while its block is on the chain", "batchReorg", 1, "failure-in-a-current-block"],
  ["a failed member counts only if it is unused at its block", "batchStranger", 1, "failure-at-its-block"],
  ["a hold made by a stranger is not a failure", "batchHolds", 1, "failure-at-its-block"],
  ["a hold's purchase is delivered once the hold is stored", "batchHolds", 11, "settled-before-others-notice"],
  ["a payment without a slot is in no transaction", "batchTime", 1, "turned-away-is-not-carried"],
  ["only a payment that fails alone is refused", "batch", 7, "refused-alone"],
  ["a shared lookup begins after it is requested", "reorgAlone", 2, "look-begins-afterwards"],
];
