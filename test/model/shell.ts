import { START, type step } from "../../api/payments/step.ts";
import type { StepEvent } from "../../api/payments/step-types.ts";
import { views } from "./chain.ts";
import { type Changed, execute, find, recordsTwice, slotOf, unusedBefore } from "./journal.ts";
import {
  type Answered,
  brokenBy,
  brokenByEntering,
  brokenByHandling,
  brokenByLooking,
  brokenByRefusing,
  brokenBySubmitting,
} from "./promises.ts";
import { bereft, isCarried, queued, withdrawn } from "./relay.ts";
import { ABANDONED, isNew, localChecks, NOTHING, requested } from "./request.ts";
import {
  asRead,
  authorizationOf,
  isDead,
  isPaid,
  type Off,
  type Process,
  resultOf,
  type Sent,
  type Surroundings,
  type World,
  withAuthorization,
  withRow,
} from "./world.ts";

/** An exploration's world, its machine, and the rule outside the machine that is switched off, if any. */
export interface Explored {
  readonly world: World;
  readonly step: typeof step;
  readonly off: Off | null;
}

/** One possible next step of a run and its result. */
export interface Outcome {
  readonly label: string;
  readonly after: Surroundings;
  /** The run after the step, or null if it has answered. */
  readonly process: Process | null;
  /** The slot whose lease token changed, if any. */
  readonly taken: number | null;
  readonly answered: Pick<Answered, "answer" | "sent" | "known"> | null;
  readonly broken: string | null;
}

interface Happened {
  readonly label: string;
  readonly after: Surroundings;
  readonly event: StepEvent;
  readonly holds?: boolean;
  readonly tookDead?: boolean;
  readonly hasNoted?: boolean;
  readonly stored?: boolean;
  readonly broken?: string | null;
}

type Waiting = Omit<Process, "command">;

const FRESH = { run: START, holds: false, tookDead: false, hasNoted: false };
const begin = (sent: Sent, slot: number): Waiting => ({ sent, slot, ...FRESH });

/**
 * Returns the outcomes of a new request, whose row is looked up, authenticated, and checked before the machine decides.
 */
export function arrive(explored: Explored, now: Surroundings, sent: Sent): Outcome[] {
  const { world, off } = explored;
  if (sent.by === "reader" && !isPaid(authorizationOf(now, sent.authorization))) return [];
  const hidden = off === "checks-after-lookup" && localChecks(now, sent) !== "ok";
  const found = hidden ? NOTHING : find(now, sent, off);
  const before = begin(sent, slotOf(now, sent, off));
  const label = `${sent.by} sends ${sent.asks} with authorization ${sent.authorization}${sent.id ? ` under ${sent.id}` : ""}`;
  if (world.pauses === "everywhere" && isNew(found)) {
    const process: Process = { ...before, command: { type: "check", frees: found.sameId !== null } };
    return [{ label, after: now, process, taken: null, answered: null, broken: null }];
  }
  return requested(explored, now, { sent, ...found }).flatMap((event) =>
    follow(explored, before, { label, after: now, event }),
  );
}

/**
 * Starts a run for each row that the journal lists as due. A fulfilled row also gets one, because its block may be
 * unreadable.
 */
export function resolve(explored: Explored, now: Surroundings): Outcome[] {
  return now.rows.flatMap((row, slot) => {
    if (row === null || row.leaseLive || row.reason !== null) return [];
    const open = row.state === "settling" || row.state === "settled" || (row.state === "fulfilled" && !row.final);
    if (!open) return [];
    const sent: Sent = { authorization: row.authorization, asks: row.asks, id: row.paymentId, by: "resolver" };
    const event: StepEvent = { type: "resolve", row: asRead(row) };
    const label = `finds payment ${row.authorization} due`;
    return follow(explored, begin(sent, slot), { label, after: now, event });
  });
}

/** Returns all possible outcomes of a run's pending command. */
export function act(explored: Explored, now: Surroundings, process: Process): Outcome[] {
  if (process.command.type === "submit" && now.relay !== null)
    return queued(now, process, explored.world).map((after) => ({
      label: "queues its payment",
      after,
      process: { ...process, command: { type: "wait" } },
      taken: null,
      answered: null,
      broken: null,
    }));
  return happen(explored, now, process).flatMap((happened) => follow(explored, process, happened));
}

/** A crash loses the payments that the process has queued in memory. */
export const crash = (now: Surroundings, process: Process): Surroundings =>
  process.command.type === "wait" ? withdrawn(now, process) : now;

/** A run that wakes up late may still have its lease and extend it. */
export function heartbeat(now: Surroundings, process: Process): Outcome[] {
  const row = now.rows[process.slot];
  const isKept = row?.state === "settling" || row?.state === "settled";
  if (!process.holds || !row || row.leaseLive || !isKept) return [];
  const after = withRow(now, process.slot, { ...row, leaseLive: true });
  return [{ label: "extends its lease", after, process, taken: null, answered: null, broken: null }];
}

function follow(explored: Explored, before: Waiting, happened: Happened): Outcome[] {
  const first = decide(explored, before, happened);
  if (first.process === null || !isImmediate(first.process.command, explored.world)) return [first];
  return act(explored, first.after, first.process).map((then) => ({
    ...then,
    label: `${first.label}, ${then.label}`,
    taken: first.taken ?? then.taken,
    broken: first.broken ?? then.broken,
  }));
}

function isImmediate({ type: what }: Process["command"], world: World): boolean {
  if (what === "submit") return world.relay !== undefined;
  if (world.pauses === "everywhere") return false;
  return what === "insert" || what === "take" || what === "handle" || (what === "preflight" && !world.refusals);
}

function decide(explored: Explored, before: Waiting, happened: Happened): Outcome {
  const { sent, slot } = before;
  const { label, broken = null, stored = false } = happened;
  const { holds = before.holds, tookDead = before.tookDead, hasNoted = before.hasNoted } = happened;
  const { run, command } = explored.step(before.run, happened.event);
  const taken = holds && !before.holds ? slot : null;
  const after = taken === null ? happened.after : bereft(happened.after, slot);
  if (command.type !== "answer") {
    return {
      label,
      after,
      process: { sent, slot, run, command, holds, tookDead, hasNoted },
      taken,
      answered: null,
      broken,
    };
  }
  const { answer } = command;
  const { known } = find(after, sent, explored.off);
  const told = answer.type === "pay" && sent.by === "payer" && !sent.otherTerms;
  return {
    label: `${label}, answers ${answer.type}`,
    after: told ? withAuthorization(after, sent.authorization, { told }) : after,
    process: null,
    taken,
    answered: { answer, sent, known },
    broken: broken ?? brokenBy(after, explored.world, { sent, known, answer, stored, isFirst: before.run === START }),
  };
}

function happen(explored: Explored, now: Surroundings, process: Process): Happened[] {
  const { command, sent } = process;
  const unread: Happened = { label: "cannot read the chain", after: now, event: { type: "unavailable" } };
  const readable = (happened: Happened[]) =>
    explored.world.calm && happened.length > 0 ? happened : [...happened, unread];
  switch (command.type) {
    case "check": {
      // Before a check refuses, the row is looked up again, because a copy may have been accepted in the meantime.
      const again = explored.off === "checks-after-lookup" ? NOTHING : find(now, sent, explored.off);
      const found = localChecks(now, sent) === "ok" ? { row: null, sameId: command.frees ? ABANDONED : null } : again;
      return requested(explored, now, { sent, ...found }).map((event) => ({ label: "checks", after: now, event }));
    }
    case "preflight":
      return readable(preflight(explored, now, process));
    case "look":
      return readable(
        views(now, sent.authorization, explored).map((view) => ({
          label: `looks: ${view.nonce}`,
          after: now,
          event: { type: "chain", view, windowOpen: now.clock === 0 },
          broken: brokenByLooking(now, process, view),
        })),
      );
    case "submit": {
      // The relayer sends one transaction per authorization and none after it was mined.
      const sends = authorizationOf(now, sent.authorization).failed === "no" || explored.off === "submitted-once";
      const broken = sends ? brokenBySubmitting(now, explored.world, process) : null;
      const after = withAuthorization(now, sent.authorization, { left: true });
      return [{ label: "hands the signature to the facilitator", after, event: { type: "submitted" }, broken }];
    }
    case "wait": {
      const after = explored.off === "withdrawn" ? now : withdrawn(now, process);
      const continues: Happened = { label: "stops waiting", after, event: { type: "submitted" } };
      if (isCarried(now, sent.authorization) && explored.off !== "turned-away-is-not-carried") return [continues];
      return [continues, { label: "finds no slot", after, event: { type: "turnedAway", because: "no place" } }];
    }
    case "handle":
      return handle(explored, now, process);
    default:
      return written(explored, now, process);
  }
}

const REFUSED: StepEvent = { type: "preflight", outcome: "refused", error: "refused" };

/** A reverting simulation is followed by a lookup, because a nonce that has paid us is not a refusal. */
function preflight({ world, off }: Explored, now: Surroundings, { sent, slot }: Process): Happened[] {
  const { authorization } = sent;
  const after = off === "own-simulation" ? withAuthorization(now, authorization, { left: true }) : now;
  const windowOpen = now.clock === 0 || off === "window-checked-again";
  const isShort =
    now.purse !== null && off !== "sum-is-covered" && unusedBefore(now, slot, off) + 1 > now.purse.balance;
  const short: StepEvent = { type: "preflight", outcome: "refused", error: "the balance is too low" };
  if (isShort && authorizationOf(now, authorization).onChain === "unused")
    return [{ label: "simulates: balance below all payments in flight", after, event: short }];
  const ok: Happened = { label: "simulates: ok", after, event: { type: "preflight", outcome: "ok", windowOpen } };
  const shown = views(now, authorization, { world, off });
  const reverted = shown.flatMap((view): Happened[] => {
    if (view.nonce === "paid")
      return [{ label: "simulates: paid already", after, event: { type: "preflight", outcome: "paid" } }];
    return world.refusals ? [{ label: "simulates: refused", after, event: REFUSED }] : [];
  });
  // A simulation together with others must not refuse, because only a payment that fails alone is refused.
  if (off === "refused-alone") return [ok, { label: "simulates: refused together with others", after, event: REFUSED }];
  // A used nonce reverts unless the node lags.
  return shown.every(({ nonce }) => nonce === "paid") ? reverted : [ok, ...reverted];
}

/** A sale with effects on others waits until its settlement is stored. */
function handle({ world, off }: Explored, now: Surroundings, process: Process): Happened[] {
  const { command } = process;
  const later: Happened = { label: "does not sell immediately", after: now, event: { type: "notImmediate" } };
  const isEarly = command.type === "handle" && !command.noted && off !== "settled-before-others-notice";
  if (isEarly && world.sells === "noticed by others") return [later];
  const broken = brokenByHandling(process, world);
  const done: Happened = { label: "handles", after: now, event: { type: "handled" }, broken };
  const failed: Happened = { label: "fails to handle", after: now, event: { type: "handleFailed" } };
  return [done, ...(world.handlerFails ? [failed] : []), ...(isEarly && world.sells === undefined ? [later] : [])];
}

/** Returns the outcomes of a statement that is acknowledged, whose acknowledgment is lost, or that never arrives. */
function written({ world, off }: Explored, now: Surroundings, process: Process): Happened[] {
  const { command, sent } = process;
  const changed = execute(now, process, off);
  const { after, rows, holds } = changed;
  const label = describe(command);
  const tookDead =
    process.tookDead || (command.type === "take" && isDead(now, authorizationOf(now, sent.authorization)));
  const broken = recordsTwice(now, process, changed)
    ? "5: the work of one payment is recorded twice"
    : (brokenByEntering(after) ?? brokenByRefusing(now, world, process));
  const stored = rows === 1 && command.type === "complete";
  const hasNoted = process.hasNoted || (rows === 1 && isSettled(command));
  const event: StepEvent = stored ? { type: "completed", response: resultOf(sent.asks) } : writtenEvent(rows);
  const done: Happened = { label, after, event, holds, tookDead, hasNoted, broken, stored };
  if (world.calm) return [done];
  const unknown = { event: { type: "writeUnknown" }, tookDead, broken } as const;
  return [
    done,
    { ...unknown, label: `${label}, no acknowledgment`, after, holds },
    { ...unknown, label: `${label}, lost on its way`, after: now, broken: null },
    ...(command.type === "complete" && world.handlerFails ? [undone(now)] : []),
  ];
}

const isSettled = (command: Process["command"]): boolean =>
  (command.type === "write" && command.to === "settled") || (command.type === "take" && command.seen === "settled");

const writtenEvent = (rows: Changed["rows"]): StepEvent =>
  rows === "crowded" ? { type: "crowded" } : { type: "written", rows };

/** Recording the sale fails, so the transaction is rolled back and the process is informed. */
const undone = (now: Surroundings): Happened => ({
  label: "fails to complete",
  after: now,
  event: { type: "handleFailed" },
});

function describe(command: Process["command"]): string {
  switch (command.type) {
    case "take":
      return `takes what is ${command.seen}`;
    case "write":
      return ["writes", command.to, command.reason, command.final && "final"].filter(Boolean).join(" ");
    case "release":
      return "releases";
    default:
      return `${command.type}s`;
  }
}
