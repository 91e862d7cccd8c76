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

/** What is explored: a world, the machine, and at most one rule that is off outside it. */
export interface Explored {
  readonly world: World;
  readonly step: typeof step;
  readonly off: Off | null;
}

/** One thing that a run may do next, and what comes of it. */
export interface Outcome {
  readonly label: string;
  readonly after: Surroundings;
  /** The run after it; null when it has answered. */
  readonly process: Process | null;
  /** The slot whose lease token changed hands. */
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

/** A request comes in: find the row, authenticate, check what has no row yet; the machine decides. */
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

/** A run for each row that the journal lists as due. One whose block stands needs none, and gets one when it cannot be read. */
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

/** Everything that may come of the command that a run has in hand. */
export function act(explored: Explored, now: Surroundings, process: Process): Outcome[] {
  if (process.command.type === "submit" && now.relay !== null)
    return queued(now, process, explored.world).map((after) => ({
      label: "hands its payment over",
      after,
      process: { ...process, command: { type: "wait" } },
      taken: null,
      answered: null,
      broken: null,
    }));
  return happen(explored, now, process).flatMap((happened) => follow(explored, process, happened));
}

/** A process takes along what it has in memory. */
export const crash = (now: Surroundings, process: Process): Surroundings =>
  process.command.type === "wait" ? withdrawn(now, process) : now;

/** A holder that wakes up late may find its lease still its own. */
export function heartbeat(now: Surroundings, process: Process): Outcome[] {
  const row = now.rows[process.slot];
  const isKept = row?.state === "settling" || row?.state === "settled";
  if (!process.holds || !row || row.leaseLive || !isKept) return [];
  const after = withRow(now, process.slot, { ...row, leaseLive: true });
  return [{ label: "prolongs its lease", after, process, taken: null, answered: null, broken: null }];
}

function follow(explored: Explored, before: Waiting, happened: Happened): Outcome[] {
  const first = decide(explored, before, happened);
  if (first.process === null || !isAtOnce(first.process.command, explored.world)) return [first];
  return act(explored, first.after, first.process).map((then) => ({
    ...then,
    label: `${first.label}, ${then.label}`,
    taken: first.taken ?? then.taken,
    broken: first.broken ?? then.broken,
  }));
}

function isAtOnce({ type: what }: Process["command"], world: World): boolean {
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
      // Before a check refuses, the row is looked for again: a copy may have been taken in meanwhile.
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
      // The relayer sends one transaction for one authorization, and none after it was mined.
      const sends = authorizationOf(now, sent.authorization).failed === "no" || explored.off === "submitted-once";
      const broken = sends ? brokenBySubmitting(now, explored.world, process) : null;
      const after = withAuthorization(now, sent.authorization, { left: true });
      return [{ label: "hands the signature to the facilitator", after, event: { type: "submitted" }, broken }];
    }
    case "wait": {
      const after = explored.off === "withdrawn" ? now : withdrawn(now, process);
      const goesOn: Happened = { label: "waits no longer", after, event: { type: "submitted" } };
      if (isCarried(now, sent.authorization) && explored.off !== "turned-away-is-not-carried") return [goesOn];
      return [goesOn, { label: "finds no place", after, event: { type: "turnedAway", because: "no place" } }];
    }
    case "handle":
      return handle(explored, now, process);
    default:
      return written(explored, now, process);
  }
}

const REFUSED: StepEvent = { type: "preflight", outcome: "refused", error: "refused" };

/** A simulation that reverts is followed by a look: a nonce that has paid us is no refusal. */
function preflight({ world, off }: Explored, now: Surroundings, { sent, slot }: Process): Happened[] {
  const { authorization } = sent;
  const after = off === "own-simulation" ? withAuthorization(now, authorization, { left: true }) : now;
  const windowOpen = now.clock === 0 || off === "window-checked-again";
  const isShort =
    now.purse !== null && off !== "sum-is-covered" && unusedBefore(now, slot, off) + 1 > now.purse.balance;
  const short: StepEvent = { type: "preflight", outcome: "refused", error: "the balance is too low" };
  if (isShort && authorizationOf(now, authorization).onChain === "unused")
    return [{ label: "simulates: too little for all in flight", after, event: short }];
  const ok: Happened = { label: "simulates: ok", after, event: { type: "preflight", outcome: "ok", windowOpen } };
  const shown = views(now, authorization, { world, off });
  const reverted = shown.flatMap((view): Happened[] => {
    if (view.nonce === "paid")
      return [{ label: "simulates: paid already", after, event: { type: "preflight", outcome: "paid" } }];
    return world.refusals ? [{ label: "simulates: refused", after, event: REFUSED }] : [];
  });
  // With others, or in their place: only what fails alone is refused.
  if (off === "refused-alone") return [ok, { label: "simulates: refused beside others", after, event: REFUSED }];
  // A used nonce reverts, unless the node lags.
  return shown.every(({ nonce }) => nonce === "paid") ? reverted : [ok, ...reverted];
}

/** A sale that others may notice waits until its settlement is stored. */
function handle({ world, off }: Explored, now: Surroundings, process: Process): Happened[] {
  const { command } = process;
  const later: Happened = { label: "does not sell at once", after: now, event: { type: "notAtOnce" } };
  const isEarly = command.type === "handle" && !command.noted && off !== "settled-before-others-notice";
  if (isEarly && world.sells === "noticed by others") return [later];
  const broken = brokenByHandling(process, world);
  const done: Happened = { label: "handles", after: now, event: { type: "handled" }, broken };
  const failed: Happened = { label: "fails to handle", after: now, event: { type: "handleFailed" } };
  return [done, ...(world.handlerFails ? [failed] : []), ...(isEarly && world.sells === undefined ? [later] : [])];
}

/** A statement that is acknowledged, one whose acknowledgement is lost, and one that never arrived. */
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
    { ...unknown, label: `${label}, no acknowledgement`, after, holds },
    { ...unknown, label: `${label}, lost on its way`, after: now, broken: null },
    ...(command.type === "complete" && world.handlerFails ? [undone(now)] : []),
  ];
}

const isSettled = (command: Process["command"]): boolean =>
  (command.type === "write" && command.to === "settled") || (command.type === "take" && command.seen === "settled");

const writtenEvent = (rows: Changed["rows"]): StepEvent =>
  rows === "crowded" ? { type: "crowded" } : { type: "written", rows };

/** What a sale records fails: the transaction is rolled back, and its process knows. */
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
