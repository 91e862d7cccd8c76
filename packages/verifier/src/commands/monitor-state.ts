import { createReadStream } from "node:fs";
import { open, readFile, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import { InputError, quote } from "../refusal.ts";
import { isObject, parseStrictJson } from "../strict-json.ts";
import type { CheckedLog } from "../tlog/follow.ts";
import { placeJson, placeOf } from "../tlog/kept-log.ts";
import type { Noted } from "../tlog/wallet-log.ts";

/** The state that a monitor stores between runs. */
export interface MonitorState {
  readonly place: CheckedLog;
  /** The number of bytes in the notes file that belong to this state; null if the log was monitored without notes. */
  readonly notes: number | null;
}

/**
 * Returns the stored state of a monitor, or null if the file does not exist. @throws InputError for a file that is not
 * a state
 */
export async function readState(file: string): Promise<MonitorState | null> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw new InputError(`${quote(file)} cannot be read: ${error.code}`);
  });
  if (text === null) return null;
  try {
    const state = parseStrictJson(text);
    const notes = isObject(state) ? state.notes : undefined;
    return { place: placeOf(state), notes: typeof notes === "number" && notes >= 0 ? notes : null };
  } catch {
    throw new InputError(`${quote(file)} is not the state of a monitor; remove it to begin at entry 0`);
  }
}

/** Writes the state so that a crash leaves either the old state or the new one. */
export async function writeState(file: string, { place, notes }: MonitorState): Promise<void> {
  const temporary = `${file}.new`;
  const handle = await open(temporary, "w").catch((error: NodeJS.ErrnoException) => {
    throw new InputError(`${quote(temporary)} cannot be written: ${error.code}`);
  });
  try {
    await handle.writeFile(`${JSON.stringify({ ...placeJson(place), ...(notes === null ? {} : { notes }) })}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(temporary, file);
  const folder = await open(dirname(file));
  await folder.sync().finally(() => folder.close());
}

// One note per line, in the order of the log. The monitor's state records the length in bytes; anything after that was
// written by a run that was killed before it wrote its state.

/**
 * Yields the notes in the first `bytes` bytes.
 * @throws InputError if the file does not hold them in full: a missing note would hide an entry
 */
export async function* readNotes(file: string, bytes: number): AsyncGenerator<Noted> {
  let read = 0;
  for await (const line of linesOf(file, bytes)) {
    const note = parse(line);
    if (note === null) break;
    read += lineOf(note).length;
    yield note;
  }
  if (read !== bytes)
    throw new InputError(`${quote(file)} was truncated or changed since the monitor wrote it. ${AGAIN}`);
}

const AGAIN = "Remove it and the state to begin at entry 0";

async function* linesOf(file: string, bytes: number): AsyncGenerator<string> {
  if (bytes === 0) return;
  const input = createReadStream(file, { encoding: "utf8", end: bytes - 1 });
  const failed = new Promise<never>((_, reject) => input.once("error", reject));
  failed.catch(() => undefined);
  try {
    await Promise.race([failed, new Promise((resolve) => input.once("open", resolve))]);
    yield* createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw new InputError(`${quote(file)} cannot be read: ${code}`);
  } finally {
    input.destroy();
  }
}

function parse(line: string): Noted | null {
  try {
    const note = JSON.parse(line) as Noted;
    return Number.isSafeInteger(note.index) && typeof note.type === "string" ? note : null;
  } catch {
    return null;
  }
}

/**
 * Begins the notes of a monitor, or checks that a file has them.
 * @param size the number of entries that the monitor has checked
 * @param bytes the length of their notes according to the state; null if the state has none
 * @returns the length of the notes
 * @throws InputError if the log was monitored without notes before, or the notes are incomplete
 */
export async function beginNotes(file: string, size: number, bytes: number | null): Promise<number> {
  if (size > 0 && bytes === null)
    throw new InputError(
      `The log was monitored up to entry ${size} without notes: remove the state to begin at entry 0`,
    );
  const handle = await open(file, size === 0 ? "w" : "r+").catch((error: NodeJS.ErrnoException) => {
    throw new InputError(
      error.code === "ENOENT"
        ? `${quote(file)} does not exist, but the log was monitored up to entry ${size}: remove the state to begin at entry 0`
        : `${quote(file)} cannot be opened: ${error.code}`,
    );
  });
  await handle.close();
  const end = size === 0 ? 0 : (bytes ?? 0);
  for await (const _ of readNotes(file, end));
  return end;
}

/** Appends notes to the first `end` bytes, and returns the new length once they would survive a crash. */
export async function appendNotes(file: string, end: number, notes: readonly Noted[]): Promise<number> {
  const lines = Buffer.concat(notes.map(lineOf));
  const handle = await open(file, "a");
  try {
    await handle.truncate(end);
    await handle.appendFile(lines);
    await handle.datasync();
  } finally {
    await handle.close();
  }
  return end + lines.length;
}

/** Escapes U+2028 and U+2029, because some readers take them for line breaks and an entry's id may contain them. */
const lineOf = (note: Noted): Buffer =>
  Buffer.from(
    `${JSON.stringify(note).replace(/[\u2028\u2029]/g, (end) => (end === "\u2028" ? "\\u2028" : "\\u2029"))}\n`,
  );
