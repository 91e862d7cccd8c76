import type { Address } from "../../api/kernel/wallet.ts";
import { NOBODY, type Scope } from "../ledger.ts";
import type { IndexerSettings } from "../settings.ts";
import { PLACE } from "./arithmetic.ts";
import { type Coverage, inOrder, readCoverage, whyNotJoined } from "./coverage.ts";
import { type Duck, NoRoomError } from "./duck.ts";
import { type Mark, UnfitHistoryError } from "./history.ts";
import { fileOf, filesOf, filesWith, inWords, messageOf, openTransfers, whatIsWrong } from "./source.ts";

// DuckDB's relations: `raw` has the files' rows, `names` a number for each wallet, `transfers` those that count.

/** What the files say, besides the transfers themselves. */
export interface Content {
  /** A hash of all rows, whatever their order and the files' format. */
  readonly hash: string;
  readonly firstBlock: number;
  /** The first and the last transfer at or after the start block. */
  readonly marks: readonly Mark[];
  /** The first and the last block of each day or longer that has no transfer, although no file says that there is none. */
  readonly gaps: readonly (readonly [number, number])[];
}

/**
 * Reads the files, or those of folders, into `raw`.
 * @throws UnfitHistoryError if they are not as docs/index.md describes, or contradict themselves.
 */
export async function readFiles(
  duck: Duck,
  given: readonly string[],
  { startBlock, scope }: Pick<IndexerSettings, "startBlock" | "scope">,
): Promise<Content> {
  const files = filesOf(given);
  const source = await openTransfers(duck, files);
  const isCovered = await expectCovered(duck, files, { startBlock, scope });
  const refuse = async (reason: string, file: string | null = null) => {
    const wrong = await whatIsWrong(duck, files).catch(() => null);
    throw new UnfitHistoryError(wrong ?? `${file ?? inWords(files)}: ${reason}`);
  };
  await duck.run(`create table raw as ${source}`).catch((error: unknown) => {
    if (error instanceof NoRoomError) throw error;
    return refuse(messageOf(error), fileOf(error));
  });
  const [all] = await duck.rows<{ fit: boolean | null; hash: string }>(
    "select bool_and(fits) as fit, concat(count(*), ' ', bit_xor(digest)) as hash from raw",
  );
  if (all?.fit === false) await refuse("a row is not as docs/index.md describes");
  await expectConsistent(duck, files);
  const [found] = await duck.rows<{ first: number | null; last: number | null }>(
    `select (min(block) filter (block >= ${startBlock ?? 0}))::integer as first, max(block)::integer as last from raw`,
  );
  if (typeof found?.first !== "number") {
    const last = found?.last ?? null;
    const has =
      last === null
        ? "no transfers"
        : `no transfers at or after START_BLOCK ${startBlock}; the last is in block ${last}`;
    throw new UnfitHistoryError(`${inWords(files)}: ${has}`);
  }
  const firstBlock = startBlock ?? found.first;
  const gaps = isCovered ? [] : await gapsOf(duck, firstBlock);
  return { hash: all?.hash ?? "", firstBlock, marks: await marksOf(duck, firstBlock), gaps };
}

type FetchedFile = Coverage & { readonly file: string };

/** Whether the files say which blocks they cover: fetched ones do. @throws UnfitHistoryError if they leave one out */
async function expectCovered(
  duck: Duck,
  files: readonly string[],
  { startBlock, scope }: Pick<IndexerSettings, "startBlock" | "scope">,
): Promise<boolean> {
  const fetched: FetchedFile[] = [];
  for (const file of files.filter((one) => one.endsWith(".parquet"))) {
    const coverage = await readCoverage(duck, file).catch((error: unknown) => {
      throw new UnfitHistoryError(`${file}: ${messageOf(error)}`);
    });
    if (coverage !== null) fetched.push({ ...coverage, file });
  }
  const all = inOrder(fetched);
  const [first] = all;
  if (first === undefined) return false;
  const wrong = whyNotJoined(all) ?? whyUnfit(all, { startBlock, scope });
  if (wrong !== null) throw new UnfitHistoryError(wrong);
  if (all.length < files.length)
    throw new UnfitHistoryError(
      "Files from npm run index:fetch say which blocks they cover, but others do not: give only one kind",
    );
  return true;
}

function whyUnfit(
  files: readonly FetchedFile[],
  { startBlock, scope }: Pick<IndexerSettings, "startBlock" | "scope">,
): string | null {
  const narrow = files.find((file) => file.scope === "authorised");
  if (scope === "full" && narrow !== undefined)
    return `${narrow.file} has authorized payments only, but INDEX_SCOPE is full`;
  const first = files[0]?.firstBlock ?? 0;
  if (startBlock !== null && startBlock < first)
    return `START_BLOCK is ${startBlock}, but the files begin at block ${first}`;
  return null;
}

/**
 * Of two transfers in the same place, one would be counted twice; and unless blocks and times are in the same order,
 * days are undefined.
 */
async function expectConsistent(duck: Duck, files: readonly string[]): Promise<void> {
  const inFiles = async (condition: string) => inWords(await filesWith(duck, files, condition));
  const [twice] = await duck.rows<{ block: bigint; log_index: bigint }>(
    "select block, log_index from raw group by block, log_index having count(*) > 1 order by block, log_index limit 1",
  );
  if (twice !== undefined) {
    const { block, log_index } = twice;
    const where = await inFiles(`block = ${block} and log_index = ${log_index}`);
    throw new UnfitHistoryError(
      `${where}: a duplicate transfer, block ${block}, log_index ${log_index}; expected each transfer once`,
    );
  }
  const [contradiction] = await duck.rows<{ block: bigint }>(`select block from (
      select block, min(time) as earliest, max(time) as latest, lag(max(time)) over (order by block) as before from raw group by block)
    where earliest <> latest or earliest < before order by block limit 1`);
  if (contradiction !== undefined) {
    const { block } = contradiction;
    const where = await inFiles(`block = ${block}`);
    throw new UnfitHistoryError(
      `${where}: the times contradict the order of the blocks at block ${block}; expected each block's own time`,
    );
  }
}

const BLOCKS_A_DAY = 43_200;

async function gapsOf(duck: Duck, firstBlock: number): Promise<Content["gaps"]> {
  const gaps = await duck.rows<{ before: number; after: number }>(
    `select before::double as before, block::double as "after" from (
        select block, lag(block, 1, ${firstBlock - 1}) over (order by block) as before
        from (select distinct block from raw where block >= ${firstBlock}))
      where block - before > ${BLOCKS_A_DAY} order by block`,
  );
  return gaps.map(({ before, after }) => [before + 1, after - 1]);
}

async function marksOf(duck: Duck, firstBlock: number): Promise<readonly Mark[]> {
  const counted = `raw where block >= ${firstBlock}`;
  const outermost = (which: "min" | "max") =>
    duck.rows<Mark>(
      `select block::integer as block, "time"::double as "time", '0x' || lower(hex("transaction")) as "transaction"
        from ${counted} and (${PLACE}) = (select ${which}(${PLACE}) from ${counted})`,
    );
  return [...(await outermost("min")), ...(await outermost("max"))];
}

export interface Counting {
  readonly scope: Scope;
  /** In lower case. */
  readonly ownAddresses: readonly Address[];
  readonly firstBlock: number;
}

/** Makes `names` and `transfers` from `raw`, which is dropped: those that count (`isBetweenOthers` in ledger.ts). */
export async function countTransfers(duck: Duck, { scope, ownAddresses, firstBlock }: Counting): Promise<number> {
  const nobody = [NOBODY, ...ownAddresses].map((address) => `unhex('${address.slice(2)}')`).join();
  const counted = `from raw where block >= ${firstBlock} and value > 0 ${scope === "full" ? "" : "and authorised"}
    and "from" <> "to" and "from" not in (${nobody}) and "to" not in (${nobody})`;
  await duck.run(`create table names as select (row_number() over (order by name))::integer as id, name
    from (select "from" as name ${counted} union select "to" ${counted})`);
  const key = await keyOfNames(duck);
  await duck.run(`create table transfers as
    select place, day, time, transaction_high, transaction_low, senders.id as sender, payees.id as payee, value, authorised,
      least(senders.id, payees.id)::bigint << 32 | greatest(senders.id, payees.id) as pair
    from (select ${PLACE} as place, (time // 86400)::integer as day, time, ${key('"from"')} as sender_key, ${key('"to"')} as payee_key,
        case when authorised then "transaction"[1:16]::uuid end as transaction_high,
        case when authorised then "transaction"[17:32]::uuid end as transaction_low, value, authorised ${counted})
      join (select id, ${key("name")} as key from names) senders on senders.key = sender_key
      join (select id, ${key("name")} as key from names) payees on payees.key = payee_key`);
  await duck.run("drop table raw");
  const [row] = await duck.rows<{ count: number }>("select count(*)::double as count from transfers");
  return row?.count ?? 0;
}

/** What a wallet's number is found by: its hash of 64 bits, half as dear as its address, unless two wallets have the same. */
async function keyOfNames(duck: Duck): Promise<(name: string) => string> {
  const [row] = await duck.rows<{ unique: boolean }>(
    "select count(distinct hash(name)) = count(*) as unique from names",
  );
  return row?.unique === true ? (name) => `hash(${name})` : (name) => name;
}
