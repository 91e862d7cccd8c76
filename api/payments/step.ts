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

const say = (given: Answer): Command => ({ type: "answer", answer: given });

/** Returns the lease, then answers. A run without a lease just answers. */
const release = (run: Run, given: Answer, failed = false): StepDecision =>
  run.holdsLease ? go(run, { type: "release", failed }, say(given)) : answer(run, given);

const pay = (error: string, kind?: RefusedFor): Answer => ({ type: "pay", error, ...(kind && { kind }) });

/** A void payment never gets a result from this header again. */
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
 * The pure core of the payment gate: one decision at a time, without clock, randomness or I/O. The shell (`gate.ts`)
 * executes the command, feeds its outcome back as the next event, and stops at `answer`. The rules, and the traces that
 * each one prevents, come from the model-checked design.
 * Total: every event has a decision in every run.
 */
export function step(run: Run, event: StepEvent): StepDecision {
  switch (event.type) {
    case "request":
      return arrive(run, event);
    case "resolve":
      return resolve({ ...run, row: event.row, job: true }, event.row);
    case "written":
      // Nothing was written: another process holds the row, or it moved on. Decide nothing.
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
    case "notAtOnce":
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
  // What has paid us already can no longer be submitted, and has no need to be.
  const enter = fresh === "paid" ? TAKE_IN : ENTER;
  return goOn({ ...run, holdsLease: true }, sameId === null ? enter : [{ type: "free" }, ...enter]);
}

const ENTER = [{ type: "insert" }, { type: "preflight" }] as const;

/** Nobody works on it, and its signature has never left us: its identifier is free for another payment. */
export const isAbandoned = ({ state, leaseLive }: Row): boolean => state === "received" && !leaseLive;

/**
 * Same payer, identifier and request with another authorization that fits: the same purchase. It is never submitted.
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
        : { type: "malformed", detail: "The signature is not that of the authorization's payer." },
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

/** Void for a reason that does not keep its payer, or a stranger, from settling it after all. */
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

/** The current command succeeded: continue with what comes next. */
function proceed(run: Run): StepDecision {
  const [next, ...rest] = run.next;
  if (next === undefined || next.type === "answer") return answer(run, next?.answer ?? WAIT.held);
  return go(run, next, ...rest);
}

const refuse = (run: Run, refusal: Refusal): StepDecision =>
  go(
    run,
    { type: "write", from: ["received"], to: "void", reason: "refused", refusal },
    say({ type: "pay", ...refusal }),
  );

function preflighted(run: Run, event: Extract<StepEvent, { type: "preflight" }>): StepDecision {
  if (event.outcome === "refused") {
    const { type: _, outcome: __, ...refusal } = event;
    return refuse(run, refusal);
  }
  // A copy checked a moment later may have been told to pay again: once a row exists, only the open window counts.
  if (event.outcome === "ok" && !event.windowOpen) return refuse(run, { error: WINDOW_ERROR, kind: "expired" });
  // A nonce that has already paid us needs no submission.
  if (event.outcome === "paid") return go(run, LEAVE, { type: "look" });
  return go({ ...run, marked: true }, LEAVE, { type: "submit" });
}

/** What this run has marked as leaving has not left. What was marked before may have. */
const turnedAway = (run: Run, given: Answer): StepDecision =>
  run.marked && !run.submitted
    ? go({ ...run, marked: false }, { type: "write", from: ["settling"], to: "received" }, say(given))
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

/** A run submits once. What was void never is: its payer heard so. */
const maySubmit = ({ row, submitted }: Run): boolean => !submitted && !row?.revived;

const end = (
  run: Run,
  ending: Pick<Write, "excused"> & { reason: "expired" | "nonce_consumed" | "reverted" },
): StepDecision =>
  go(run, { type: "write", from: ["settling", "settled"], to: "void", ...ending }, say(over(ending.reason)));

/** A sale that is made at once completes in the statement that stores its settlement. */
const settle = (run: Run, settlement: Settlement): StepDecision =>
  go({ ...run, settlement }, { type: "handle", settlement, noted: false });

const note = (settlement: Settlement): Write => ({
  type: "write",
  from: ["settling", "settled"],
  to: "settled",
  settlement,
});

/** Stored before work that others may notice, or that takes its time. */
const settled = (run: Run, settlement: Settlement): StepDecision =>
  go({ ...run, noted: true }, note(settlement), { type: "handle", settlement, noted: true });

/** A handler that fails leaves the row settled. */
function failed(run: Run): StepDecision {
  const { settlement, noted } = run;
  if (noted || settlement === null) return release(run, WAIT.failed, true);
  return go({ ...run, noted: true }, note(settlement), { type: "release", failed: true }, say(WAIT.failed));
}

/**
 * Not on the chain (any more) but not dead either: a settled row goes back, and a request with an open window submits
 * again.
 */
function unsettled(run: Run, submitAgain: boolean): StepDecision {
  if (run.row?.state === "settled") {
    const back: Write = { type: "write", from: ["settled"], to: "settling" };
    const row = { ...run.row, state: "settling" as const, settlement: null };
    return submitAgain
      ? go({ ...run, row }, back, { type: "submit" })
      : go({ ...run, row }, back, { type: "release", failed: false }, say(WAIT.unsettled));
  }
  return submitAgain ? go(run, { type: "submit" }) : release(run, WAIT.unsettled);
}

/** A refused or reverted authorization that the chain shows paid to us is fulfilled after all. */
function revive(run: Run, view: View): StepDecision {
  if (view.nonce !== "paid") return answer(run, run.row === null ? over("refused") : overAgain(run.row));
  const write: Write = { type: "write", from: ["settling"], to: "settled", settlement: view.settlement };
  const { settlement } = view;
  const revived = { ...run, settlement, noted: true, holdsLease: true };
  return go(revived, { type: "revive" }, write, { type: "handle", settlement, noted: true });
}

/** A fulfilled payment is watched until its settlement is final. */
function watched(run: Run, view: View, windowOpen: boolean): StepDecision {
  const from = ["fulfilled"] as const;
  const done = say({ type: "done" });
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
