import { fromBase64, toBase64 } from "../encodings.ts";
import { InputError, Refusal } from "../refusal.ts";
import { isObject, type Json, parseUnsignedJson } from "../strict-json.ts";
import { isKnownType } from "./entry.ts";
import type { CheckedLog } from "./follow.ts";
import { growTiles } from "./grow.ts";
import { sameBytes } from "./hash.ts";
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

/** Returns a place as stored JSON. */
export function placeJson({ root, edge, ...rest }: CheckedLog): object {
  const top = Math.max(-1, ...edge.keys());
  const levels = Array.from({ length: top + 1 }, (_, level) => toBase64(edge.get(level) ?? new Uint8Array()));
  return { version: 1, ...rest, root: toBase64(root), edge: levels };
}

/** Without this check, a damaged file would look like a fork. */
function isWhole({ size, root, edge }: Pick<CheckedLog, "size" | "root" | "edge">): boolean {
  try {
    return Number.isSafeInteger(size) && size >= 0 && sameBytes(growTiles({ size, edge, leaves: [] }).root, root);
  } catch {
    return false;
  }
}

/** @throws TypeError if it is not a place */
export function placeOf(state: Json | undefined): CheckedLog {
  if (!isObject(state)) throw new TypeError("not an object");
  const { version, origin, size, root, note, edge } = state;
  const decode = (value: unknown): Uint8Array => {
    const bytes = typeof value === "string" ? fromBase64(value) : null;
    if (bytes === null) throw new TypeError("not base64");
    return bytes;
  };
  if (version !== 1 || typeof origin !== "string" || typeof size !== "number" || typeof note !== "string")
    throw new TypeError("not of this version");
  if (!Array.isArray(edge)) throw new TypeError("no edge");
  const levels = edge.map((hashes, level): [number, Uint8Array] => [level, decode(hashes)]);
  const place = { size, root: decode(root), edge: new Map(levels.filter(([, hashes]) => hashes.length > 0)) };
  if (!isWhole(place)) throw new TypeError("its root does not match its edge");
  return { origin, size, note, root: place.root, edge: place.edge };
}
