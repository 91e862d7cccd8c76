import { closeSync, createWriteStream, fsyncSync, mkdirSync, openSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { asMetadata, type Coverage, inOrder, readCoverage } from "../history/coverage.ts";
import { type Duck, openDuck, quote } from "../history/duck.ts";
import { sealFile } from "../history/seal.ts";
import { FetchError } from "./provider.ts";

/** A file of the folder, and what it covers. */
export type FetchedFile = Coverage & { readonly file: string };

export interface Store {
  /** In the order of their blocks. */
  readonly files: () => Promise<readonly FetchedFile[]>;
  /** Writes a file of lines of CSV, whole or not at all. */
  readonly write: (day: string, lines: AsyncIterable<string>, coverage: () => Coverage) => Promise<FetchedFile>;
  readonly close: () => void;
}

const UNFINISHED = /^\.fetching-(\d+)$/;
const COLUMNS = `{block: 'INTEGER', "time": 'BIGINT', "transaction": 'VARCHAR', log_index: 'INTEGER', "from": 'VARCHAR', "to": 'VARCHAR', value: 'BIGINT', authorised: 'BOOLEAN'}`;
/** Bytes take half the space of text. */
const SELECTED = `block, "time", unhex(substr("transaction", 3)) as "transaction", log_index, unhex(substr("from", 3)) as "from",
  unhex(substr("to", 3)) as "to", value, authorised`;

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function sync(path: string): void {
  const descriptor = openSync(path, "r");
  fsyncSync(descriptor);
  closeSync(descriptor);
}

/** The fetched files of a folder, which is made if there is none. What a killed run has left unfinished is removed. */
export async function openStore(folder: string): Promise<Store> {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw new FetchError(
      `${folder} is not a folder to write to: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  for (const name of readdirSync(folder)) {
    const pid = UNFINISHED.exec(name)?.[1];
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(join(folder, name), { recursive: true, force: true });
  }
  // A second thread takes a third more processor time, and what it writes is not the same on every machine.
  const duck = await openDuck(join(folder, `.fetching-${process.pid}`), 1);
  return {
    files: () => coverages(duck, folder),
    write: (day, lines, coverage) => write({ duck, folder, day }, lines, coverage),
    close: duck.close,
  };
}

async function coverages(duck: Duck, folder: string): Promise<readonly FetchedFile[]> {
  const found: FetchedFile[] = [];
  for (const name of readdirSync(folder).filter((one) => one.endsWith(".parquet"))) {
    const file = join(folder, name);
    const coverage = await readCoverage(duck, file).catch((error: unknown) => {
      throw new FetchError(
        `${file} cannot be read: ${error instanceof Error ? error.message : String(error)}. Remove it, and it is fetched again`,
      );
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
  coverage: () => Coverage,
): Promise<FetchedFile> {
  const csv = join(duck.folder, `${day}.csv`);
  await pipeline(Readable.from(lines), createWriteStream(csv));
  const covered = coverage();
  const name = `${day}-${covered.scope}-${covered.firstBlock}-${covered.lastBlock}.parquet`;
  const unfinished = join(duck.folder, name);
  const rows = `select ${SELECTED} from read_csv(${quote(csv)}, auto_detect = false, header = false, delim = ',', columns = ${COLUMNS})`;
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
