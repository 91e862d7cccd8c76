import { createReadStream } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { createInterface } from "node:readline";
import { InputError, quote } from "../refusal.ts";
import type { Noted } from "../tlog/wallet-log.ts";

// One note a line, in the order of the log. The monitor's state says how many entries they cover; what is after them was
// written by a run that was killed before it wrote its state.

/** The notes of the entries below `size`. @throws InputError for a file that is none */
export async function* readNotes(file: string, size: number): AsyncGenerator<Noted> {
  const input = createReadStream(file, "utf8");
  const failed = new Promise<never>((_, reject) => input.once("error", reject));
  failed.catch(() => undefined);
  try {
    await Promise.race([failed, new Promise((resolve) => input.once("open", resolve))]);
    for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      const note = parse(line);
      if (note === null || note.index >= size) return;
      yield note;
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw new InputError(`${quote(file)} cannot be read: ${code}`);
  } finally {
    input.destroy();
  }
}

/** A line that is cut was not finished. */
function parse(line: string): Noted | null {
  try {
    const { index, type } = JSON.parse(line) as Noted;
    return Number.isSafeInteger(index) && typeof type === "string" ? (JSON.parse(line) as Noted) : null;
  } catch {
    return null;
  }
}

export interface WalletNotes {
  /** Adds notes after those that are kept, and returns once they would outlive a crash. */
  add(notes: readonly Noted[]): Promise<void>;
  /** The state covers what was added. */
  keep(): void;
  close(): Promise<void>;
}

/**
 * Opens the notes of a monitor that has checked `size` entries, and cuts what is after them.
 * @throws InputError if the log was followed before without notes
 */
export async function openNotes(file: string, size: number): Promise<WalletNotes> {
  const handle = await open(file, size === 0 ? "w" : "r+").catch((error: NodeJS.ErrnoException) => {
    throw new InputError(
      error.code === "ENOENT"
        ? `${quote(file)} is not there, and the log was followed to entry ${size}: remove the state to begin at entry 0`
        : `${quote(file)} cannot be opened: ${error.code}`,
    );
  });
  let end = 0;
  for await (const note of readNotes(file, size)) end += lineOf(note).length;
  let added = 0;
  return {
    async add(notes) {
      const bytes = Buffer.concat(notes.map(lineOf));
      await handle.truncate(end);
      added = await write(handle, bytes, end);
      await handle.datasync();
    },
    keep() {
      end += added;
      added = 0;
    },
    close: () => handle.close(),
  };
}

const lineOf = (note: Noted): Buffer => Buffer.from(`${JSON.stringify(note)}\n`);

async function write(handle: FileHandle, bytes: Buffer, at: number): Promise<number> {
  for (let done = 0; done < bytes.length; )
    done += (await handle.write(bytes, done, bytes.length - done, at + done)).bytesWritten;
  return bytes.length;
}
