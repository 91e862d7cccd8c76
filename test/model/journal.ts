import type { Row } from "../../api/payments/step-types.ts";
import {
  asRead,
  authorizationOf,
  type JournalRow,
  type Off,
  type Process,
  resultOf,
  type Sent,
  type Surroundings,
  withAuthorization,
  withRow,
} from "./world.ts";

/** What a statement did: how many rows it changed, and whether the row now carries this run's lease token. */
export interface Changed {
  readonly after: Surroundings;
  readonly rows: 0 | 1;
  readonly holds: boolean;
}

export function slotOf(now: Surroundings, { authorization, id }: Sent, off: Off | null): number {
  if (off === "nonce-in-key") return 0;
  return off === "key-per-authorization" && id !== null ? now.authorizations.length : authorization;
}

/** The live row of another authorization under the same identifier. */
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
  /** The row that was found either way. */
  readonly known: JournalRow | null;
}

export function find(now: Surroundings, sent: Sent, off: Off | null): Found {
  const slot = slotOf(now, sent, off);
  const row = now.rows[slot] ?? null;
  const other = row === null ? underIdentifier(now, { id: sent.id, slot }, off) : null;
  return { row: row && asRead(row), sameId: other && asRead(other), known: row ?? other };
}

/** Executes the statement of a command; a command without one is a mistake of the model. */
export function execute(now: Surroundings, process: Process, off: Off | null): Changed {
  const { command, slot, holds } = process;
  const row = now.rows[slot] ?? null;
  const none: Changed = { after: now, rows: 0, holds };
  const changed = (after: JournalRow | null, taken = holds): Changed => ({
    after: withRow(now, slot, after),
    rows: 1,
    holds: taken,
  });
  switch (command.do) {
    case "insert":
      return row !== null || underIdentifier(now, { id: process.sent.id, slot }, off)
        ? none
        : changed(received(process.sent, off), true);
    case "take":
      return row !== null && row.state === command.seen && !row.leaseLive
        ? changed({ ...row, leaseLive: true }, true)
        : none;
    case "revive":
      return row?.state === "void" && row.reason === "refused"
        ? changed({ ...row, state: "settling", reason: null, paymentId: null, leaseLive: true }, true)
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
      throw new Error(`${command.do} is no statement`);
  }
}

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
  place: 0,
  final: false,
  response: null,
});

/** What the sale records, its answer and the row's last state: all of it behind the guard, or none. */
function complete(now: Surroundings, { slot, holds }: Process, off: Off | null): Changed {
  const row = now.rows[slot] ?? null;
  if (row === null) return { after: now, rows: 0, holds };
  const record = (after: Surroundings) => withAuthorization(after, row.authorization, { recorded: true });
  if (off !== "guard" && !(holds && row.state === "settled"))
    return { after: off === "one-transaction" ? record(now) : now, rows: 0, holds };
  const fulfilled: JournalRow = { ...row, state: "fulfilled", response: resultOf(row.asks), leaseLive: false };
  return { after: record(withRow(now, slot, fulfilled)), rows: 1, holds };
}

/** One guarded UPDATE. */
function write(now: Surroundings, { command, slot, holds }: Process, off: Off | null): Changed {
  const row = now.rows[slot] ?? null;
  if (command.do !== "write" || row === null) return { after: now, rows: 0, holds };
  const { from, to, reason, settlement, final } = command;
  if (off !== "guard" && !(holds && from.includes(row.state))) return { after: now, rows: 0, holds };
  if (off === "refusal-is-kept" && reason === "refused") return { after: withRow(now, slot, null), rows: 1, holds };
  const after: JournalRow = {
    ...row,
    state: to,
    reason: reason ?? row.reason,
    place: to === "settling" ? 0 : (settlement?.block ?? row.place),
    final: final ?? row.final,
    leaseLive: to === "fulfilled" || to === "void" ? false : row.leaseLive,
  };
  return { after: withRow(now, slot, after), rows: 1, holds };
}

/** A statement that records work which is recorded already. */
export const recordsTwice = (now: Surroundings, { command, slot }: Process, { after }: Changed): boolean => {
  const row = now.rows[slot];
  if (command.do !== "complete" || !row) return false;
  const before = authorizationOf(now, row.authorization);
  return before.recorded && after !== now;
};
