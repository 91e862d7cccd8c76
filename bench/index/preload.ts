import { createReadStream } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { from as copyFrom } from "pg-copy-streams";
import { writeCsv } from "../../test/support/indexer/generated-chain.ts";
import { processorMs, runProgram } from "../programs.ts";
import type { Figure } from "../table.ts";
import { historyOf, inIndexWorld, type World } from "./world.ts";

/** Compares `npm run index:preload` of a file with a COPY of the same file into one table with a primary key. */
export const preload = (transfers: number): Promise<readonly Figure[]> =>
  inIndexWorld(historyOf(transfers), async (world) => {
    const file = await fileOf(world);
    // Includes PostgreSQL, which is also a child of this process.
    const used = () => processorMs(process.pid);
    const before = used();
    const { peakMiB } = await runProgram("scripts/index-preload.ts", world.env, [file]);
    const between = used();
    await copyBare(world, file);
    const perSecond = (ms: number) => (transfers * 1_000) / ms;
    const [ours, peer] = [perSecond(between - before), perSecond(used() - between)];
    return [
      { name: "preload, transfers per processor second", ours, atLeast: 20_000 },
      { name: "preload, and a bare COPY of the file", ours, peer },
      { name: "preload, MiB", ours: peakMiB, atMost: 4_096 },
    ];
  });

/** Writes the chain's transfers as a file for `index:preload`. */
export async function fileOf({ chain, folder }: World): Promise<string> {
  const file = join(folder, "transfers.csv");
  await writeCsv(chain, file);
  return file;
}

async function copyBare({ db }: World, file: string): Promise<void> {
  await db.query(`create table bare (block int, "time" int8, transaction text, log_index int, "from" text, "to" text,
    value numeric, authorized bool, primary key (block, log_index))`);
  const client = await db.connect();
  try {
    await pipeline(createReadStream(file), client.query(copyFrom("copy bare from stdin (format csv, header)")));
  } finally {
    client.release();
  }
}
