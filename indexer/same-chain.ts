import pg from "pg";
import type { Hex, PublicClient } from "viem";
import { MAIN_NETWORK, NETWORKS } from "../api/platform/networks.ts";
import { type Head, readBlock } from "./chain.ts";
import { ponderSchemas, type Queryable } from "./schemas.ts";

const { chainId: CHAIN_ID } = NETWORKS[MAIN_NETWORK];

/** A block as the index remembers it; one taken from a checkpoint has only a time. */
export interface Mark {
  readonly number: number;
  readonly hash: Hex | null;
  /** Unix seconds. */
  readonly timestamp: number;
}

/** What a node says of a mark. `missing` says nothing of the chain: the node may be late, or keep no old blocks. */
type Finding = "same" | "missing" | Contradiction;
interface Contradiction {
  readonly mark: Mark;
  readonly instead: Mark;
}

/** So many readings must show another block before the chain counts as another. */
const READINGS = 3;

/** The node serves another chain than the one that the index was made from. Nothing was dropped. */
export class OtherChainError extends Error {
  override readonly name = "OtherChainError";

  constructor({ mark, instead }: Contradiction) {
    super(
      `The index was made from another chain than the node's: it remembers block ${mark.number} as ${inWords(mark)}, and ${READINGS} times the node returned ${inWords(instead)}. Nothing was dropped. If BASE_RPC_URL is right, drop the index with npm run index:drop; the next start makes a new one.`,
    );
  }
}

const inWords = ({ hash, timestamp }: Mark): string =>
  `${hash === null ? "" : `${hash}, `}of ${new Date(timestamp * 1000).toISOString().replace(".000", "")}`;

export interface ChainNode {
  readonly client: PublicClient;
  /** Its newest block. */
  readonly head: Head;
}

export interface Patience {
  /** How long a node must contradict the index, in milliseconds. */
  readonly overMs: number;
  readonly wait: (ms: number) => Promise<unknown>;
}

/**
 * Whether the index was made from this chain: null if so, else why that cannot be told yet. Ponder keys its copy by
 * chain id alone: on a local chain that was wiped or rolled back it would stop, or keep the dead fork's rows permanently.
 *
 * No answer, an error or a `null` is evidence of anything: providers lag, forget and fail. Only a block that the node
 * returns, and that differs from the one the index remembers, in every reading over a while, is.
 * @throws OtherChainError for a chain that is another
 */
export async function whyNotSameChain(
  db: pg.Pool,
  { client, head }: ChainNode,
  { overMs, wait }: Patience,
): Promise<string | null> {
  const finalized = await finalizedMarks(db);
  const marks = [...(await rememberedMarks(db, head.number)), ...finalized];
  const findings = await Promise.all(marks.map((mark) => findOnChain(client, mark)));
  let contradictions = findings.filter(isContradiction);
  if (contradictions.length === 0) return whyUnknown(finalized, head, findings);
  for (let reading = 2; reading <= READINGS; reading += 1) {
    await wait(overMs / (READINGS - 1));
    const again = await Promise.all(contradictions.map(({ mark }) => findOnChain(client, mark)));
    contradictions = again.filter(isContradiction);
  }
  const [first] = contradictions;
  if (first !== undefined) throw new OtherChainError(first);
  return "the node contradicted the index, and then itself";
}

const isContradiction = (finding: Finding): finding is Contradiction => typeof finding !== "string";

function whyUnknown(finalized: readonly Mark[], head: Head, findings: readonly Finding[]): string | null {
  if (finalized.some(({ number }) => number > head.number))
    return "the node is behind a block that is final in the index";
  if (findings.length > 0 && !findings.includes("same")) return "the node returns no block that the index remembers";
  return null;
}

/** Compares a mark with the node's block of that number. Rejects if the node does not answer. */
async function findOnChain(chain: PublicClient, mark: Mark): Promise<Finding> {
  const block = await readBlock(chain, mark.number);
  if (block === null) return "missing";
  const isSame = block.timestamp === mark.timestamp && (mark.hash === null || mark.hash === block.hash);
  return isSame ? "same" : { mark, instead: block };
}

/** Blocks that stay known when Ponder's copy of the chain is pruned. */
const MARKS = `create schema if not exists indexer;
  create table if not exists indexer.chain_mark
    (chain_id int8, number int8, hash text not null, time int8 not null, primary key (chain_id, number))`;

/** Remembers the chain's first block. */
export async function rememberFirstBlock(db: pg.Pool, chain: PublicClient): Promise<void> {
  await db.query(MARKS);
  const [once, again] = [await readBlock(chain, 0), await readBlock(chain, 0)];
  if (once === null || again === null || once.hash !== again.hash) return;
  await db.query("insert into indexer.chain_mark values ($1, 0, $2, $3) on conflict do nothing", [
    ...[CHAIN_ID, once.hash, once.timestamp],
  ]);
}

/**
 * Remembers some of the blocks below `end` that are in Ponder's copy of the chain: the last one of each sixty-fourth or so of the
 * way there, so that of a chain that went back, one is known shortly below its head.
 */
export async function rememberBlocks(db: Queryable, end: number): Promise<void> {
  const grain = "greatest(0, floor(log(2, greatest(number, 1)))::int - 6)";
  await db.query(MARKS);
  await db.query(
    `insert into indexer.chain_mark select distinct on (${grain}, number >> ${grain}) chain_id, number, hash, timestamp
      from ponder_sync.blocks where chain_id = $1 and number < $2
      order by ${grain}, number >> ${grain}, number desc on conflict do nothing`,
    [CHAIN_ID, end],
  );
}

/** Of all known blocks the first one, the last one, and the last one that a chain with this head may have. */
async function rememberedMarks(db: Queryable, head: number): Promise<readonly Mark[]> {
  const sources = [
    ["indexer.chain_mark", "number, hash, time as timestamp"],
    ["ponder_sync.blocks", "number, hash, timestamp"],
  ] as const;
  const marks: Mark[] = [];
  for (const [table, columns] of sources) {
    if (!(await exists(db, table))) continue;
    const known = `select ${columns} from ${table} where chain_id = $1`;
    const { rows } = await db.query<{ number: string; hash: Hex; timestamp: string }>(
      `(${known} order by number limit 1) union (${known} order by number desc limit 1)
        union (${known} and number <= $2 order by number desc limit 1)`,
      [CHAIN_ID, head],
    );
    marks.push(...rows.map((row) => ({ ...row, number: Number(row.number), timestamp: Number(row.timestamp) })));
  }
  return marks;
}

/** Where each index permanently stands: Ponder refuses to go back before this. */
async function finalizedMarks(db: Queryable): Promise<readonly Mark[]> {
  const marks: Mark[] = [];
  for (const schema of await ponderSchemas(db)) {
    const mark = await finalizedMark(db, schema);
    if (mark !== null) marks.push(mark);
  }
  return marks;
}

/** Where one index permanently stands; null if Ponder has not begun to fill it. */
export async function finalizedMark(db: Queryable, schema: string): Promise<Mark | null> {
  const table = `${pg.escapeIdentifier(schema)}._ponder_checkpoint`;
  if (!(await exists(db, table))) return null;
  const { rows } = await db.query<{ checkpoint: string }>(
    `select finalized_checkpoint as checkpoint from ${table} where chain_id = $1 order by 1 desc limit 1`,
    [CHAIN_ID],
  );
  // Ponder's checkpoint: 10 digits of Unix time, 16 of chain id, 16 of block number, then the place in the block.
  const at = rows[0]?.checkpoint;
  return at === undefined ? null : { number: Number(at.slice(26, 42)), hash: null, timestamp: Number(at.slice(0, 10)) };
}

export async function exists(db: Queryable, table: string): Promise<boolean> {
  const { rows } = await db.query<{ exists: boolean }>("select to_regclass($1) is not null as exists", [table]);
  return rows[0]?.exists === true;
}
