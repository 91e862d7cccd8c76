import {
  closeSync,
  createWriteStream,
  fsyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
} from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { asMetadata, type Coverage, inOrder, readCoverage } from "../history/coverage.ts";
import { type Duck, namedExactly, openDuck, quote } from "../history/duck.ts";
import { sealFile } from "../history/seal.ts";
import { messageOf } from "../history/source.ts";
import { FetchError } from "./provider.ts";

/** A file of the folder, and what it covers. */
export type FetchedFile = Coverage & { readonly file: string };

export interface Store {
  /** In the order of their blocks. */
  readonly files: () => Promise<readonly FetchedFile[]>;
  /** Writes a file of lines of CSV, whole or not at all. */
  readonly write: (day: string, lines: AsyncIterable<string>, coverage: Coverage) => Promise<FetchedFile>;
  readonly close: () => void;
}

/** What the names of unfinished work begin with. */
const UNFINISHED = ".fetching-";
/** A file that a run has locked. */
const LOCK = ".fetching";
const COLUMNS = `{block: 'INTEGER', "time": 'BIGINT', "transaction": 'VARCHAR', log_index: 'INTEGER', "from": 'VARCHAR', "to": 'VARCHAR', value: 'BIGINT', authorised: 'BOOLEAN'}`;
/** Bytes take half the space of text. */
const SELECTED = `block, "time", unhex(substr("transaction", 3)) as "transaction", log_index, unhex(substr("from", 3)) as "from",
  unhex(substr("to", 3)) as "to", value, authorised`;

function sync(path: string): void {
  const descriptor = openSync(path, "r");
  fsyncSync(descriptor);
  closeSync(descriptor);
}

/**
 * The fetched files of a folder, which is made if there is none. What a killed run has left unfinished is removed.
 * @throws FetchError if it cannot be written to, or another run writes to it
 */
export async function openStore(folder: string): Promise<Store> {
  const duck = await openIn(folder);
  const lock = join(folder, LOCK);
  try {
    // The system gives the lock back when this process ends, however that happens.
    await duck.run(`attach ${quote(lock)} as lock`);
  } catch (error) {
    duck.close();
    const message = messageOf(error);
    throw new FetchError(
      message.includes("Conflicting lock")
        ? `Another index:fetch is writing to ${folder}: wait for its end, or use another folder`
        : `${lock} cannot be written: ${message}. Remove it if it is there`,
    );
  }
  for (const name of readdirSync(folder).filter((one) => one.startsWith(UNFINISHED)))
    if (join(folder, name) !== duck.folder) rmSync(join(folder, name), { recursive: true, force: true });
  return {
    files: () => coverages(duck, folder),
    write: (day, lines, coverage) =>
      write({ duck, folder, day }, lines, coverage).catch((error: unknown) => {
        if (error instanceof FetchError) throw error;
        throw new FetchError(`${day} could not be written to ${folder}: ${messageOf(error)}. Run it again to go on`);
      }),
    close: () => {
      rmSync(lock, { force: true });
      duck.close();
    },
  };
}

async function openIn(folder: string): Promise<Duck> {
  try {
    mkdirSync(folder, { recursive: true });
    // A second thread takes a third more processor time, and what it writes is not the same on every machine.
    return await openDuck(mkdtempSync(join(folder, UNFINISHED)), 1);
  } catch (error) {
    throw new FetchError(`${folder} is not a folder to write to: ${messageOf(error)}`);
  }
}

async function coverages(duck: Duck, folder: string): Promise<readonly FetchedFile[]> {
  const found: FetchedFile[] = [];
  for (const name of readdirSync(folder).filter((one) => one.endsWith(".parquet"))) {
    const file = join(folder, name);
    const coverage = await readCoverage(duck, file).catch((error: unknown) => {
      throw new FetchError(`${file} cannot be read: ${messageOf(error)}. Remove it, and it is fetched again`);
    });
    if (coverage === null) throw new FetchError(`${file} is not from npm run index:fetch: use another folder`);
    found.push({ ...coverage, file });
  }
  return inOrder(found);
}

interface Place {
  readonly duck: Duck;
  readonly folder: string;
  readonly day: string;
}

async function write(
  { duck, folder, day }: Place,
  lines: AsyncIterable<string>,
  covered: Coverage,
): Promise<FetchedFile> {
  const csv = join(duck.folder, `${day}.csv`);
  await pipeline(Readable.from(lines), createWriteStream(csv));
  const name = `${day}-${covered.scope}-${covered.firstBlock}-${covered.lastBlock}.parquet`;
  const unfinished = join(duck.folder, name);
  const rows = `select ${SELECTED} from read_csv(${quote(namedExactly(csv))}, auto_detect = false, header = false, delim = ',', columns = ${COLUMNS})`;
  await duck.run(
    `copy (${rows} order by block, log_index) to ${quote(unfinished)} (format parquet, compression zstd, compression_level 1, kv_metadata ${asMetadata(covered)})`,
  );
  rmSync(csv);
  await sealFile(unfinished);
  sync(unfinished);
  renameSync(unfinished, join(folder, name));
  sync(folder);
  return { ...covered, file: join(folder, name) };
}
