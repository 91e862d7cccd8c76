import { InputError, Refusal } from "../refusal.ts";
import { isObject, type Json, parseUnsignedJson } from "../strict-json.ts";
import type { Expectation } from "../verify-document.ts";
import { isKnownType } from "./entry.ts";
import { type CheckedLog, type Followed, follow, START } from "./follow.ts";
import { documentUrl, type LogFiles } from "./log-files.ts";
import { placeJson, placeOf } from "./place.ts";
import type { Policy } from "./policy.ts";
import { TILE_WIDTH } from "./tile.ts";
import { type Noted, noteOf } from "./wallet-log.ts";

/** The part of a log that was checked, and its entries about wallets' certificates. */
export interface KeptLog {
  readonly place: CheckedLog;
  readonly notes: readonly Noted[];
}

/** By origin. */
export type KeptLogs = ReadonlyMap<string, KeptLog>;

/** Small, so that most of the progress survives if a log stops responding. */
const BUNDLES_AT_ONCE = 8;

export interface ReadOn {
  readonly files: LogFiles;
  /** The log's address. Documents that are too large for the log are fetched from its host only. */
  readonly url: string;
  readonly fetchText: (url: string) => Promise<Uint8Array>;
  /** A policy that trusts this log only. */
  readonly policy: Policy;
  readonly expected: Expectation;
  /** The maximum number of new entries; rounded up to whole bundles of 256. */
  readonly most: number;
  /** Called with each intermediate state, so that progress survives a later failure. */
  readonly keep: (log: KeptLog) => void;
}

/**
 * Reads a log from its stored place onward.
 * @returns the number of entries of its newest checkpoint that remain to be read
 * @throws Refusal for a log that is not genuine, InputError for one that cannot be read
 */
export async function readOn(kept: KeptLog | undefined, given: ReadOn): Promise<number> {
  const { files, url, fetchText, policy, expected, most, keep } = given;
  let { place, notes } = kept ?? { place: START, notes: [] };
  for (let bundles = Math.ceil(most / TILE_WIDTH); bundles > 0; bundles -= BUNDLES_AT_ONCE) {
    const fresh: Noted[] = [];
    const next: Followed = await follow(place, {
      ...{ log: files, policy, expected, mostBundles: Math.min(bundles, BUNDLES_AT_ONCE) },
      fetchDocument: async (at) => fetchText(documentUrl(at, url)),
      seen(entry, document) {
        const note = noteOf(entry, document);
        if (note !== null) fresh.push(note);
      },
    });
    if (next.place !== place) {
      ({ place } = next);
      notes = [...notes, ...fresh];
      keep({ place, notes });
    }
    if (next.ahead === 0) return 0;
    if (bundles <= BUNDLES_AT_ONCE) return next.ahead;
  }
  return Number.POSITIVE_INFINITY;
}

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
