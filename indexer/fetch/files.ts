import { createWriteStream, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { DuckDBInstance } from "@duckdb/node-api";
import { type Coverage, coverageOf, type FetchedFile, inOrder, nameOf } from "../history/coverage.ts";
import { messageOf } from "../history/duck.ts";
import { HEADER, isOfTransfers } from "../history/files.ts";

/** A setting or a file in the folder is wrong, or nodes contradict each other. Fetched files stay. */
export class FetchError extends Error {
  override readonly name = "FetchError";
}

const LOCK = ".fetching";
const UNFINISHED = ".unfinished.csv.gz";

/**
 * Takes a folder for this process and creates it if it does not exist. Returns what releases it.
 * @throws FetchError if it cannot be written to, or another run writes to it
 */
export async function lockFolder(folder: string): Promise<() => void> {
  const lock = join(folder, LOCK);
  try {
    mkdirSync(folder, { recursive: true });
    // DuckDB has its file locked, and the system releases the lock when this process ends, however that happens.
    const database = await DuckDBInstance.create(lock);
    rmSync(join(folder, UNFINISHED), { force: true });
    return () => {
      rmSync(lock, { force: true });
      database.closeSync();
    };
  } catch (error) {
    const message = messageOf(error);
    throw new FetchError(
      message.includes("Conflicting lock")
        ? `Another index:fetch is writing to ${folder}: wait for its end, or use another folder`
        : `${folder} is not a folder to write to: ${message}`,
    );
  }
}

/** The fetched files of a folder, in the order of their blocks. @throws FetchError if it has other files of transfers */
export function fetchedFiles(folder: string): readonly FetchedFile[] {
  const names = readdirSync(folder).filter(isOfTransfers);
  const foreign = names.find((name) => coverageOf(name) === null);
  if (foreign !== undefined)
    throw new FetchError(`${join(folder, foreign)} is not from npm run index:fetch: use another folder`);
  return inOrder(names.map((name) => coverageOf(join(folder, name))).filter((file) => file !== null));
}

/** Writes a file of lines of CSV, whole or not at all. */
export async function writeFetched(
  folder: string,
  coverage: Coverage,
  lines: AsyncIterable<string>,
): Promise<FetchedFile> {
  const [unfinished, file] = [join(folder, UNFINISHED), join(folder, nameOf(coverage))];
  const all = async function* () {
    yield `${HEADER}\n`;
    yield* lines;
  };
  try {
    // On the disk before it has its name.
    await pipeline(Readable.from(all()), createGzip(), createWriteStream(unfinished, { flush: true }));
    renameSync(unfinished, file);
  } catch (error) {
    rmSync(unfinished, { force: true });
    const isOfDisk = error instanceof Error && "syscall" in error;
    throw isOfDisk ? new FetchError(`${file} could not be written: ${messageOf(error)}. Run it again to go on`) : error;
  }
  return { ...coverage, file };
}
