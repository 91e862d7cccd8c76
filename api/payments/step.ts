import type { Settlement, View } from "../platform/chain/view.ts";
import { result, unavailable, VOID_ERRORS, WAIT, WINDOW_ERROR } from "./answers.ts";
import type { Refusal, RefusedFor } from "./refusal.ts";
import type { Answer, Arrival, Command, Reason, Row, Run, StepDecision, StepEvent, Write } from "./step-types.ts";

export const START: Run = {
  row: null,
  job: false,
  submitted: false,
  marked: false,
  holdsLease: false,
  settlement: null,
  noted: false,
  next: [],
};

const answer = (run: Run, given: Answer): StepDecision => ({
  run,
  command: { type: "answer", answer: run.job ? { type: "done" } : given },
});

const goOn = (run: Run, [command, ...next]: readonly [Command, ...Command[]]): StepDecision => ({
  run: { ...run, next },
  command,
});

const go = (run: Run, command: Command, ...next: Command[]): StepDecision => goOn(run, [command, ...next]);

const answerWith = (given: Answer): Command => ({ type: "answer", answer: given });

/** Releases the lease, then answers. A run without a lease just answers. */
const release = (run: Run, given: Answer, failed = false): StepDecision =>
  run.holdsLease ? go(run, { type: "release", failed }, answerWith(given)) : answer(run, given);

const pay = (error: string, kind?: RefusedFor): Answer => ({ type: "pay", error, ...(kind && { kind }) });

/** Returns the answer for a void payment, which never gets a result from this header again. */
function over(reason: Reason, refusal: Refusal | null = null): Answer {
  if (reason === "expired") return pay(VOID_ERRORS.expired, "expired");
  if (reason === "nonce_consumed") return pay(VOID_ERRORS.nonce_consumed, "consumed");
  if (reason !== "refused" || refusal === null) return pay(VOID_ERRORS[reason]);
  return { type: "pay", ...refusal, error: `${VOID_ERRORS.refused} It was refused because: ${refusal.error}` };
}

const overAgain = ({ reason, refusal }: Row): Answer => over(reason ?? "refused", refusal);

/** Committed before a signature leaves the process. */
const LEAVE: Write = { type: "write", from: ["received"], to: "settling" };

const TAKE_IN = [{ type: "insert" }, LEAVE, { type: "look" }] as const;

/**
 * The pure core of the payment gate. It makes one decision at a time, without a clock, randomness, or I/O. The shell
 * (`gate.ts`) executes the command, feeds its outcome back as the next event, and stops at `answer`. The rules, and the
 * traces that each one prevents, come from the model-checked design. The function is total: every event has a decision
 * in every run.
 */
export function step(run: Run, event: StepEvent): StepDecision {
  switch (event.type) {
    case "request":
      return arrive(run, event);
    case "resolve":
      return resolve({ ...run, row: event.row, job: true }, event.row);
    case "written":
      // Nothing was written, because another process holds the row or it has changed. Decide nothing.
      return event.rows === 1 ? proceed(run) : answer({ ...run, holdsLease: false }, WAIT.held);
    case "crowded":
      return answer({ ...run, holdsLease: false }, WAIT.crowded);
    case "barred":
      return answer({ ...run, holdsLease: false }, { type: "barred", seconds: event.seconds });
    case "writeUnknown":
      return answer({ ...run, holdsLease: false }, unavailable(run));
    case "unavailable":
      return release(run, unavailable(run));
    case "preflight":
      return preflighted(run, event);
    case "submitted":
      return go({ ...run, submitted: true }, { type: "look" });
    case "turnedAway":
      return turnedAway(run, WAIT[event.because]);
    case "chain":
      return looked(run, event.view, event.windowOpen);
    case "notImmediate":
      return run.settlement === null ? answer(run, WAIT.held) : settled(run, run.settlement);
    case "handled":
      return go(run, { type: "complete", settlement: run.noted ? null : run.settlement });
    case "completed":
      return answer(run, { type: "result", response: event.response, settlement: run.settlement, replay: false });
    case "handleFailed":
      return failed(run);
    default:
      return event satisfies never;
  }
}

function arrive(run: Run, event: Arrival): StepDecision {
  const { row, sameId, fresh } = event;
  if (row !== null) return known({ ...run, row }, row, event);
  const bought = sameId === null || isAbandoned(sameId) ? null : sameId;
  if (typeof fresh !== "string" && fresh.type === "pay") return answer(run, fresh);
  if (event.signature === "invalid") return answer(run, pay("The signature is not the payer's."));
  if (bought !== null) return sameIdentifier({ ...run, row: bought }, bought, event);
  if (typeof fresh !== "string") return answer(run, fresh);
  // A payment that has already paid us can no longer be submitted, and does not need to be.
  const enter = fresh === "paid" ? TAKE_IN : ENTER;
  return goOn({ ...run, holdsLease: true }, sameId === null ? enter : [{ type: "free" }, ...enter]);
}

const ENTER = [{ type: "insert" }, { type: "preflight" }] as const;

/** Whether no run works on the payment. Its signature has never left us, so another payment may use its identifier. */
export const isAbandoned = ({ state, leaseLive }: Row): boolean => state === "received" && !leaseLive;

/**
 * Decides on another authorization with the payer, identifier, and request of a known purchase. It is never submitted.
 */
function sameIdentifier(run: Run, row: Row, event: Arrival): StepDecision {
  if (row.fingerprint !== event.fingerprint) {
    return answer(run, {
      type: "conflict",
      detail: "You already used this payment identifier for another request.",
    });
  }
  if (row.state === "fulfilled") return answer(run, result(row, true));
  return answer(run, row.state === "settled" ? WAIT.heldCharged : WAIT.held);
}

function known(run: Run, row: Row, event: Arrival): StepDecision {
  if (event.signature === "invalid") {
    return answer(
      run,
      row.state === "void"
        ? over(row.reason ?? "refused")
        : { type: "malformed", detail: "The signature was not made by the authorization's payer." },
    );
  }
  if (row.digest !== event.digest)
    return answer(run, {
      type: "conflict",
      detail: "This authorization's nonce was already presented with different terms.",
    });
  if (row.fingerprint !== event.fingerprint)
    return answer(run, { type: "conflict", detail: "This payment already belongs to another request." });
  if (row.state === "void") {
    return canRevive(row.reason) ? go(run, { type: "look" }) : answer(run, overAgain(row));
  }
  // An observer of the chain can rebuild the authorization, but not the identifier the payer sent with it.
  if (row.paymentId !== null && row.paymentId !== event.paymentId) {
    return answer(run, {
      type: "conflict",
      detail: "This payment was made with a payment identifier; a retry must send the same one.",
    });
  }
  if (row.state === "fulfilled") return answer(run, result(row, true));
  if (row.leaseLive) return answer(run, row.state === "settled" ? WAIT.heldCharged : WAIT.held);
  return take(run, row);
}

/** Whether a void payment can still be settled by its payer or by a stranger. */
const canRevive = (reason: Reason | null): boolean => reason === "refused" || reason === "reverted";

const take = (run: Run, row: Row): StepDecision =>
  go(
    { ...run, holdsLease: true },
    { type: "take", seen: row.state },
    row.state === "received" ? { type: "preflight" } : { type: "look" },
  );

function resolve(run: Run, row: Row): StepDecision {
  const open =
    row.state === "settling" ||
    row.state === "settled" ||
    (row.state === "fulfilled" && !row.final && row.reason !== "bait");
  return open && !row.leaseLive ? take(run, row) : answer(run, { type: "done" });
}

/** Continues with the next command after a success. */
function proceed(run: Run): StepDecision {
  const [next, ...rest] = run.next;
  if (next === undefined || next.type === "answer") return answer(run, next?.answer ?? WAIT.held);
  return go(run, next, ...rest);
}

const refuse = (run: Run, refusal: Refusal): StepDecision =>
  go(
    run,
    { type: "write", from: ["received"], to: "void", reason: "refused", refusal },
    answerWith({ type: "pay", ...refusal }),
  );

function preflighted(run: Run, event: Extract<StepEvent, { type: "preflight" }>): StepDecision {
  if (event.outcome === "refused") {
    const { type: _, outcome: __, ...refusal } = event;
    return refuse(run, refusal);
  }
  // A copy checked a moment later may already have been refused with a 402, so from here on only the open window
  // counts.
  if (event.outcome === "ok" && !event.windowOpen) return refuse(run, { error: WINDOW_ERROR, kind: "expired" });
  // A nonce that has already paid us needs no submission.
  if (event.outcome === "paid") return go(run, LEAVE, { type: "look" });
  return go({ ...run, marked: true }, LEAVE, { type: "submit" });
}

/** Undoes the move to settling if this run made it. A payment that was in settling before may have been submitted. */
const turnedAway = (run: Run, given: Answer): StepDecision =>
  run.marked && !run.submitted
    ? go({ ...run, marked: false }, { type: "write", from: ["settling"], to: "received" }, answerWith(given))
    : release(run, WAIT.unsettled);

function looked(run: Run, view: View, windowOpen: boolean): StepDecision {
  const state = run.row?.state;
  if (state === "void") return revive(run, view);
  if (state === "fulfilled") return watched(run, view, windowOpen);
  switch (view.nonce) {
    case "paid":
      return settle(run, view.settlement);
    case "dead":
      return end(run, { reason: view.reason });
    case "reverted":
      return end(run, { reason: "reverted", ...(view.excused && { excused: true }) });
    default:
      return unsettled(run, view.nonce === "unused" && windowOpen && !run.job && maySubmit(run));
  }
}

/** A run submits once, and never a revived payment, because its payer knows it as void. */
const maySubmit = ({ row, submitted }: Run): boolean => !submitted && !row?.revived;

const end = (
  run: Run,
  ending: Pick<Write, "excused"> & { reason: "expired" | "nonce_consumed" | "reverted" },
): StepDecision =>
  go(run, { type: "write", from: ["settling", "settled"], to: "void", ...ending }, answerWith(over(ending.reason)));

/** Makes the sale. If it completes immediately, the same statement stores its settlement. */
const settle = (run: Run, settlement: Settlement): StepDecision =>
  go({ ...run, settlement }, { type: "handle", settlement, noted: false });

const note = (settlement: Settlement): Write => ({
  type: "write",
  from: ["settling", "settled"],
  to: "settled",
  settlement,
});

/** Stores the settlement before work that is visible to others or takes time. */
const settled = (run: Run, settlement: Settlement): StepDecision =>
  go({ ...run, noted: true }, note(settlement), { type: "handle", settlement, noted: true });

/** A handler that fails leaves the row settled. */
function failed(run: Run): StepDecision {
  const { settlement, noted } = run;
  if (noted || settlement === null) return release(run, WAIT.failed, true);
  return go({ ...run, noted: true }, note(settlement), { type: "release", failed: true }, answerWith(WAIT.failed));
}

/**
 * Handles a payment that is not (or no longer) on the chain but may still settle: a settled row goes back, and a
 * request with an open window submits again.
 */
function unsettled(run: Run, submitAgain: boolean): StepDecision {
  if (run.row?.state === "settled") {
    const back: Write = { type: "write", from: ["settled"], to: "settling" };
    const row = { ...run.row, state: "settling" as const, settlement: null };
    return submitAgain
      ? go({ ...run, row }, back, { type: "submit" })
      : go({ ...run, row }, back, { type: "release", failed: false }, answerWith(WAIT.unsettled));
  }
  return submitAgain ? go(run, { type: "submit" }) : release(run, WAIT.unsettled);
}

/** Fulfills a refused or reverted authorization that the chain shows as paid to us. */
function revive(run: Run, view: View): StepDecision {
  if (view.nonce !== "paid") return answer(run, run.row === null ? over("refused") : overAgain(run.row));
  const write: Write = { type: "write", from: ["settling"], to: "settled", settlement: view.settlement };
  const { settlement } = view;
  const revived = { ...run, settlement, noted: true, holdsLease: true };
  return go(revived, { type: "revive" }, write, { type: "handle", settlement, noted: true });
}

/** Watches a fulfilled payment until its settlement is final. */
function watched(run: Run, view: View, windowOpen: boolean): StepDecision {
  const from = ["fulfilled"] as const;
  const done = answerWith({ type: "done" });
  switch (view.nonce) {
    case "paid": {
      if (view.final)
        return go(run, { type: "write", from, to: "fulfilled", settlement: view.settlement, final: true }, done);
      const moved =
        view.settlement.blockHash !== run.row?.settlement?.blockHash ||
        view.settlement.transaction !== run.row?.settlement?.transaction;
      return moved
        ? go(
            run,
            { type: "write", from, to: "fulfilled", settlement: view.settlement },
            { type: "release", failed: false },
            done,
          )
        : release(run, { type: "done" });
    }
    case "dead":
      return go(run, { type: "write", from, to: "void", reason: "reversed" }, done);
    case "unused":
      return windowOpen && maySubmit(run) ? go(run, { type: "submit" }) : release(run, { type: "done" });
    case "spent":
    case "reverted":
      return release(run, { type: "done" });
    default:
      return view satisfies never;
  }
}
