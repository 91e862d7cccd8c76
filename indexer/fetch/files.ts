import { closeSync, createWriteStream, fsyncSync, mkdirSync, openSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { DuckDBInstance } from "@duckdb/node-api";
import { type Coverage, coverageOf, type FetchedFile, inOrder, nameOf } from "../history/coverage.ts";
import { messageOf } from "../history/duck.ts";
import { HEADER, isOfTransfers } from "../history/files.ts";
import { FetchError } from "./provider.ts";

const LOCK = ".fetching";
const UNFINISHED = ".unfinished.csv.gz";

/**
 * Takes a folder for this process, which is made if there is none. Returns what releases it.
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
export const fetchedFiles = (folder: string): readonly FetchedFile[] =>
  inOrder(
    readdirSync(folder)
      .filter(isOfTransfers)
      .map((name) => {
        const file = coverageOf(join(folder, name));
        if (file === null)
          throw new FetchError(`${join(folder, name)} is not from npm run index:fetch: use another folder`);
        return file;
      }),
  );

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
    await pipeline(Readable.from(all()), createGzip(), createWriteStream(unfinished));
    sync(unfinished);
    renameSync(unfinished, file);
    sync(folder);
  } catch (error) {
    rmSync(unfinished, { force: true });
    if (error instanceof FetchError) throw error;
    throw new FetchError(`${file} could not be written: ${messageOf(error)}. Run it again to go on`);
  }
  return { ...coverage, file };
}

function sync(path: string): void {
  const descriptor = openSync(path, "r");
  fsyncSync(descriptor);
  closeSync(descriptor);
}
