import { LastingError } from "../ledger.ts";
import type { IndexerSettings } from "../settings.ts";
import { coverageOf, type FetchedFile, gapIn, inOrder, whyNotOneChain } from "./coverage.ts";
import type { Duck } from "./duck.ts";
import { addFile, filesOf, RAW_TABLE } from "./files.ts";
import type { Mark } from "./history.ts";

type Wanted = Pick<IndexerSettings, "startBlock" | "scope">;

/**
 * Reads the files, including the files in folders, into `raw`.
 * @returns the first block, and the first and the last transfer at or after the start block
 * @throws LastingError if they do not match docs/index-history.md, or contradict themselves or each other
 */
export async function readFiles(duck: Duck, given: readonly string[], wanted: Wanted) {
  const files = filesOf(given);
  const fetched = inOrder(files.map(coverageOf).filter((file) => file !== null));
  const wrong = fetched.length === 0 ? null : whyUnfit(fetched, { ...wanted, count: files.length });
  if (wrong !== null) throw new LastingError(wrong);
  await duck.run(RAW_TABLE);
  for (const [number, file] of files.entries()) await addFile(duck, file, number);
  await expectConsistent(duck, files);
  const from = wanted.startBlock ?? 0;
  const [first, last] = [await markOf(duck, from, "asc"), await markOf(duck, from, "desc")];
  if (first !== undefined && last !== undefined)
    return { firstBlock: wanted.startBlock ?? first.block, marks: [first, last] as const };
  throw new LastingError(`${inWords(files)}: no transfers at or after block ${from}`);
}

const inWords = (files: readonly string[]): string =>
  files.length > 4 ? `${files.slice(0, 3).join(" and ")} and ${files.length - 3} more` : files.join(" and ");

/** Returns the reason that fetched files, in order, do not form a history, or null. */
function whyUnfit(
  fetched: readonly FetchedFile[],
  { startBlock, scope, count }: Wanted & { count: number },
): string | null {
  if (fetched.length < count)
    return "Only files from npm run index:fetch record which blocks they cover. Do not mix them with other files";
  const [first, last] = [fetched[0] as FetchedFile, fetched.at(-1) as FetchedFile];
  if (scope === "full") return `${first.file} has authorized payments only, but INDEX_SCOPE is full`;
  if (startBlock !== null && startBlock < first.firstBlock)
    return `START_BLOCK is ${startBlock}, but the files begin at block ${first.firstBlock}`;
  const gap = gapIn(fetched, first.firstBlock, last.lastBlock);
  return whyNotOneChain(fetched) ?? (gap && `No file has the blocks ${gap.first} to ${gap.last}`);
}

/**
 * Rejects duplicate transfers, which would be counted twice, and times that are not in the order of the blocks, which would
 * make days undefined.
 */
async function expectConsistent(duck: Duck, files: readonly string[]): Promise<void> {
  const refuse = async (condition: string, reason: string) => {
    const found = await duck.rows<{ file: number }>(`select distinct file from raw where ${condition} order by file`);
    throw new LastingError(`${inWords(found.map(({ file }) => files[file] ?? ""))}: ${reason}`);
  };
  const [twice] = await duck.rows<{ block: number; log: number }>(
    "select block, log_index as log from raw group by all having count(*) > 1 order by all limit 1",
  );
  if (twice !== undefined)
    await refuse(
      `block = ${twice.block} and log_index = ${twice.log}`,
      `a duplicate transfer, block ${twice.block}, log_index ${twice.log}; expected each transfer once`,
    );
  const [wrong] = await duck.rows<{ block: number }>(`select block from (
      select block, min(time) as earliest, max(time) as latest, lag(max(time)) over (order by block) as before from raw group by block)
    where earliest <> latest or earliest < before order by block limit 1`);
  if (wrong !== undefined)
    await refuse(
      `block = ${wrong.block}`,
      `the times contradict the order of the blocks at block ${wrong.block}; expected each block's own time`,
    );
}

/** Returns the first or the last transfer at or after a block. */
async function markOf(duck: Duck, firstBlock: number, order: "asc" | "desc"): Promise<Mark | undefined> {
  const [row] = await duck.rows<Mark>(
    `select block, "time"::double as "time", '0x' || lower(hex("transaction")) as "transaction" from raw
      where block >= ${firstBlock} order by block ${order}, log_index ${order} limit 1`,
  );
  return row;
}
