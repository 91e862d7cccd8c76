import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fetchTransfers } from "../../indexer/fetch/fetch.ts";
import { openDuck, quote } from "../../indexer/history/duck.ts";
import { bareEnvironment } from "../support/service/environment.ts";

/** A transfer in the fetched files. */
export interface FetchedRow {
  readonly block: number;
  readonly time: number;
  readonly transaction: string;
  readonly log_index: number;
  readonly from: string;
  readonly to: string;
  readonly value: string;
  readonly authorized: boolean;
}

export const filesIn = (folder: string): readonly string[] => readdirSync(folder).sort();

/** All rows of the folder's files, in the order of the files. */
export async function readRows(folder: string): Promise<readonly FetchedRow[]> {
  const duck = await openDuck(join(folder, "..", "reading"));
  try {
    const files = filesIn(folder).map((name) => quote(join(folder, name)));
    await duck.run("set preserve_insertion_order = true");
    return await duck.rows<FetchedRow>(
      `select block::integer as block, "time"::double as "time", "transaction", log_index::integer as log_index, "from", "to", value::varchar as value,
        authorized from read_csv([${files.join()}], header = true)`,
    );
  } finally {
    duck.close();
  }
}

export interface FetchRun {
  readonly folder: string;
  readonly urls: readonly string[];
  readonly startBlock?: number | null;
  readonly tell?: (line: string) => void;
}

/** Runs the fetch in this process at the nodes' speed. */
export const fetchInto = ({ folder, urls, startBlock = 0, tell = () => undefined }: FetchRun) =>
  fetchTransfers({ urls, perSecond: 10_000, startBlock }, folder, tell);

/** Starts `npm run index:fetch`. */
export function startFetch(args: readonly string[], env: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, ["scripts/index-fetch.ts", ...args], {
    env: { ...bareEnvironment(), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const code = new Promise<number | null>((resolve) => child.once("exit", resolve));
  const ended = Promise.all([code, text(child.stdout), text(child.stderr)]).then(([code, ...streams]) => ({
    code,
    output: streams.join(""),
  }));
  return { pid: child.pid ?? 0, ended };
}
