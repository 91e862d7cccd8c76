import { InputError, Refusal } from "../refusal.ts";
import { isObject, type Json, parseUnsignedJson } from "../strict-json.ts";
import { isKnownType } from "./entry.ts";
import type { CheckedLog } from "./follow.ts";
import { placeJson, placeOf } from "./place.ts";
import type { Noted } from "./wallet-log.ts";

/** The part of a log that was checked, and its entries about wallets' certificates. */
export interface KeptLog {
  readonly place: CheckedLog;
  readonly notes: readonly Noted[];
}

/** By origin. */
export type KeptLogs = ReadonlyMap<string, KeptLog>;

/** Returns whether a program read it that did not know a type which this one does; then it is read again. */
export const isOutdated = ({ notes }: KeptLog): boolean =>
  notes.some((note) => note.type === "unknown" && isKnownType(note.entry_type));

export const formatKept = (logs: KeptLogs): string =>
  `${JSON.stringify({ version: 1, logs: [...logs.values()].map(({ place, notes }) => ({ place: placeJson(place), notes })) })}\n`;

/** @throws InputError for a text that `formatKept` did not write */
export function parseKept(text: string): KeptLogs {
  try {
    const kept = parseUnsignedJson(text);
    if (!isObject(kept) || kept.version !== 1 || !Array.isArray(kept.logs)) throw new TypeError("no logs");
    const logs = (kept.logs as readonly Json[]).map((log): [string, KeptLog] => {
      if (!isObject(log) || !Array.isArray(log.notes)) throw new TypeError("no notes");
      const place = placeOf(log.place);
      return [place.origin, { place, notes: log.notes.map(noteIn) }];
    });
    return new Map(logs);
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof Refusal)) throw error;
    throw new InputError("the stored state of the log cannot be read; remove it to begin at entry 0", { cause: error });
  }
}

function noteIn(note: Json): Noted {
  if (!isObject(note) || typeof note.index !== "number" || typeof note.id !== "string") throw new TypeError("no note");
  return note as unknown as Noted;
}
