import { randomUUID } from "node:crypto";
import { createWriteStream, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { type Coverage, coverageOf, type FetchedFile, inOrder, nameOf } from "../history/coverage.ts";
import { messageOf } from "../history/duck.ts";
import { HEADER, isOfTransfers } from "../history/files.ts";
import { LastingError } from "../ledger.ts";

const UNFINISHED = ".unfinished";

/**
 * Creates the folder if needed, and removes unfinished files. A run that is still writing one of them fails.
 * @throws LastingError if the folder is not writable
 */
export function openFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
    for (const name of readdirSync(folder)) if (name.startsWith(UNFINISHED)) rmSync(join(folder, name));
  } catch (error) {
    throw new LastingError(`${folder} is not a folder to write to: ${messageOf(error)}`);
  }
}

/** Returns the fetched files of a folder, in the order of their blocks. @throws LastingError if it has other files of transfers */
export function fetchedFiles(folder: string): readonly FetchedFile[] {
  const names = readdirSync(folder).filter(isOfTransfers);
  const foreign = names.find((name) => coverageOf(name) === null);
  if (foreign !== undefined)
    throw new LastingError(`${join(folder, foreign)} is not from npm run index:fetch: use another folder`);
  return inOrder(names.map((name) => coverageOf(join(folder, name))).filter((file) => file !== null));
}

/** Writes a CSV file atomically. */
export async function writeFetched(
  folder: string,
  coverage: Coverage,
  lines: AsyncIterable<string>,
): Promise<FetchedFile> {
  const [unfinished, file] = [join(folder, `${UNFINISHED}-${randomUUID()}`), join(folder, nameOf(coverage))];
  const all = async function* () {
    yield `${HEADER}\n`;
    yield* lines;
  };
  try {
    // Flush the file to disk before renaming it.
    await pipeline(Readable.from(all()), createGzip(), createWriteStream(unfinished, { flush: true }));
    renameSync(unfinished, file);
  } catch (error) {
    rmSync(unfinished, { force: true });
    const isOfDisk = error instanceof Error && "syscall" in error;
    throw isOfDisk
      ? new LastingError(`${file} could not be written: ${messageOf(error)}. Run the command again to continue`)
      : error;
  }
  return { ...coverage, file };
}
