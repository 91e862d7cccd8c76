import type { Row } from "../../api/payments/step-types.ts";
import {
  asRead,
  authorizationOf,
  isInFlight,
  type JournalRow,
  type Off,
  type Process,
  resultOf,
  type Sent,
  type Surroundings,
  withAuthorization,
  withRow,
} from "./world.ts";

/**
 * The effect of a statement: the state after it, the number of changed rows, and whether the run has the row's lease
 * token.
 */
export interface Changed {
  readonly after: Surroundings;
  readonly rows: 0 | 1 | "crowded";
  readonly holds: boolean;
}

export function slotOf(now: Surroundings, { authorization, id }: Sent, off: Off | null): number {
  if (off === "nonce-in-key") return 0;
  return off === "key-per-authorization" && id !== null ? now.authorizations.length : authorization;
}

/** Returns the live row of another authorization under the same identifier, or null. */
function underIdentifier(
  now: Surroundings,
  { id, slot }: { readonly id: string | null; readonly slot: number },
  off: Off | null,
): JournalRow | null {
  if (id === null || off === "one-live-identifier") return null;
  const live = (row: JournalRow) => row.state !== "void" || off === "void-frees-identifier";
  return now.rows.find((row, at) => at !== slot && row !== null && row.paymentId === id && live(row)) ?? null;
}

export interface Found {
  readonly row: Row | null;
  readonly sameId: Row | null;
  /** The row found by either key. */
  readonly known: JournalRow | null;
}

export function find(now: Surroundings, sent: Sent, off: Off | null): Found {
  const slot = slotOf(now, sent, off);
  const row = now.rows[slot] ?? null;
  const other = row === null ? underIdentifier(now, { id: sent.id, slot }, off) : null;
  return { row: row && asRead(row), sameId: other && asRead(other), known: row ?? other };
}

/** Executes the statement of a command. A command without a statement is an error of the model. */
export function execute(now: Surroundings, process: Process, off: Off | null): Changed {
  const { command, slot, holds } = process;
  const row = now.rows[slot] ?? null;
  const none: Changed = { after: now, rows: 0, holds };
  const changed = (after: JournalRow | null, taken = holds): Changed => ({
    after: withRow(now, slot, after),
    rows: 1,
    holds: taken,
  });
  switch (command.type) {
    case "insert":
      if (isCrowded(now, off)) return { ...none, rows: "crowded" };
      return row !== null || underIdentifier(now, { id: process.sent.id, slot }, off)
        ? none
        : entered(changed(received(process.sent, off), true), slot);
    case "free":
      return free(now, process, off);
    case "take":
      if (command.seen === "received") return takeReceived(now, process, off);
      return row !== null && row.state === command.seen && !row.leaseLive
        ? changed({ ...row, leaseLive: true }, true)
        : none;
    case "revive":
      return row?.state === "void" && (row.reason === "refused" || row.reason === "reverted")
        ? changed({ ...row, state: "settling", reason: null, paymentId: null, leaseLive: true, revived: true }, true)
        : none;
    case "release":
      return row !== null && ((holds && row.state !== "void") || off === "guard")
        ? changed({ ...row, leaseLive: false })
        : none;
    case "write":
      return write(now, process, off);
    case "complete":
      return complete(now, process, off);
    default:
      throw new Error(`${command.type} is no statement`);
  }
}

const isCrowded = ({ purse, rows }: Surroundings, off: Off | null): boolean =>
  purse !== null && off !== "most-in-flight" && rows.filter((row) => row && isInFlight(row)).length >= purse.most;

/** Makes the row the last one in flight. The others keep their order. */
function entered(changed: Changed, slot: number): Changed {
  const { after } = changed;
  if (after.purse === null) return changed;
  const last = (row: JournalRow, at: number) => (at === slot ? after.rows.length : row.entered);
  const order = after.rows.flatMap((row, at) => (row ? [last(row, at)] : [])).sort((a, b) => a - b);
  const rows = after.rows.map((row, at) => row && { ...row, entered: order.indexOf(last(row, at)) + 1 });
  return { ...changed, after: { ...after, rows } };
}

function takeReceived(now: Surroundings, { slot, holds }: Process, off: Off | null): Changed {
  const row = now.rows[slot] ?? null;
  if (isCrowded(now, off)) return { after: now, rows: "crowded", holds };
  if (row === null || row.state !== "received" || row.leaseLive) return { after: now, rows: 0, holds };
  return entered({ after: withRow(now, slot, { ...row, leaseLive: true }), rows: 1, holds: true }, slot);
}

/** Returns the number of the payer's earlier payments in flight with unused nonces. */
export const unusedBefore = (now: Surroundings, slot: number, off: Off | null): number =>
  now.rows.filter((row, at) => {
    if (row === null || at === slot || !isInFlight(row)) return false;
    const isEarlier = row.entered < (now.rows[slot]?.entered ?? 0) || off === "earlier-ones-count";
    return isEarlier && authorizationOf(now, row.authorization).onChain === "unused";
  }).length;

export const digestOf = ({ authorization, otherTerms }: Sent, off: Off | null): string =>
  off === "nonce-in-key" ? "0xd" : `0xd${authorization}${otherTerms ? "'" : ""}`;

export const fingerprintOf = ({ asks }: Sent, off: Off | null): string =>
  off === "whole-fingerprint" ? (asks.split("?")[0] ?? "") : asks;

const received = (sent: Sent, off: Off | null): JournalRow => ({
  authorization: sent.authorization,
  asks: sent.asks,
  digest: digestOf(sent, off),
  fingerprint: fingerprintOf(sent, off),
  paymentId: sent.id,
  state: "received",
  reason: null,
  leaseLive: true,
  entered: 0,
  place: 0,
  final: false,
  revived: false,
  response: null,
});

/** Removes the row with the identifier if it is abandoned and its signature has never left. */
function free(now: Surroundings, { sent, slot, holds }: Process, off: Off | null): Changed {
  const held = underIdentifier(now, { id: sent.id, slot }, off);
  const isAbandoned = held?.state === "received" && !held.leaseLive;
  return held !== null && (isAbandoned || off === "removed-if-abandoned")
    ? { after: withRow(now, now.rows.indexOf(held), null), rows: 1, holds }
    : { after: now, rows: 0, holds };
}

/** Writes the sale's records, its answer, and the row's last state together, if the guard passes. */
function complete(now: Surroundings, { command, slot, holds }: Process, off: Off | null): Changed {
  const row = now.rows[slot] ?? null;
  if (command.type !== "complete" || row === null) return { after: now, rows: 0, holds };
  const { settlement } = command;
  const record = (after: Surroundings) => withAuthorization(after, row.authorization, { recorded: true });
  const isSettled = row.state === "settled" || (row.state === "settling" && settlement !== null);
  if (off !== "guard" && !(holds && isSettled))
    return { after: off === "one-transaction" ? record(now) : now, rows: 0, holds };
  const place = settlement?.block ?? row.place;
  const fulfilled: JournalRow = { ...row, state: "fulfilled", place, response: resultOf(row.asks), leaseLive: false };
  return { after: record(withRow(now, slot, fulfilled)), rows: 1, holds };
}

/** Executes one guarded UPDATE. */
function write(now: Surroundings, { command, slot, holds }: Process, off: Off | null): Changed {
  const row = now.rows[slot] ?? null;
  if (command.type !== "write" || row === null) return { after: now, rows: 0, holds };
  const { from, to, reason, settlement, final } = command;
  const isLapsed =
    row.state === "received" && to === "settling" && !row.leaseLive && off !== "leaves-with-a-live-lease";
  if (off !== "guard" && (isLapsed || !(holds && from.includes(row.state)))) return { after: now, rows: 0, holds };
  if (off === "refusal-is-kept" && reason === "refused") return { after: withRow(now, slot, null), rows: 1, holds };
  const after: JournalRow = {
    ...row,
    state: to,
    reason: reason ?? row.reason,
    place: to === "settling" ? 0 : (settlement?.block ?? row.place),
    final: final ?? row.final,
    leaseLive: to === "fulfilled" || to === "void" || to === "received" ? false : row.leaseLive,
  };
  return { after: withRow(now, slot, after), rows: 1, holds };
}

/** Returns whether a statement records work that is already recorded. */
export const recordsTwice = (now: Surroundings, { command, slot }: Process, { after }: Changed): boolean => {
  const row = now.rows[slot];
  if (command.type !== "complete" || !row) return false;
  const before = authorizationOf(now, row.authorization);
  return before.recorded && after !== now;
};
