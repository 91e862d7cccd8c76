import { open, readFile, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { InputError, quote } from "../refusal.ts";
import { isObject, parseStrictJson } from "../strict-json.ts";
import type { CheckedLog } from "../tlog/follow.ts";
import { placeJson, placeOf } from "../tlog/kept-log.ts";

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
