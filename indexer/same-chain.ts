import pg from "pg";
import type { Hex, PublicClient } from "viem";
import { type Head, readBlock } from "./chain.ts";
import { CHAIN_ID } from "./ledger.ts";
import { exists, ponderSchemas, type Queryable } from "./schemas.ts";

/** A block as the index remembers it; one taken from a checkpoint has only a time. */
interface Mark extends Head {
  readonly hash: Hex | null;
}

interface Contradiction {
  readonly mark: Mark;
  readonly instead: Mark;
}

/** This many readings must show another block before the chain counts as another. */
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

export interface Patience {
  /** How long a node must contradict the index, in milliseconds. */
  readonly overMs: number;
  readonly wait: (ms: number) => Promise<unknown>;
}

/**
 * Whether the index was made from this chain: null if so, else why that cannot be told yet. Ponder keys its copy by
 * chain id alone: on a local chain that was wiped or rolled back it would stop, or keep the dead fork's rows permanently.
 *
 * A null, an error or a timeout proves nothing: providers lag, forget and fail. A block does that the node returns, and
 * that differs from the one the index remembers, in every reading over a while.
 * @throws OtherChainError for a chain that is another
 */
export async function whyNotSameChain(
  db: pg.Pool,
  { client, head }: { readonly client: PublicClient; readonly head: Head },
  { overMs, wait }: Patience,
): Promise<string | null> {
  const finals: Mark[] = [];
  for (const schema of await ponderSchemas(db)) {
    const mark = await finalizedMark(db, schema);
    if (mark !== null) finals.push(mark);
  }
  const marks = [...(await rememberedMarks(db, head.number)), ...finals];
  let contradictions: readonly Contradiction[] = [];
  for (let [reading, doubtful] = [1, marks]; reading <= READINGS; reading += 1) {
    if (reading > 1) await wait(overMs / (READINGS - 1));
    const findings = await Promise.all(doubtful.map((mark) => findOnChain(client, mark)));
    contradictions = findings.filter((finding) => typeof finding !== "string");
    doubtful = contradictions.map(({ mark }) => mark);
    if (reading > 1 || contradictions.length > 0) continue;
    if (finals.some(({ number }) => number > head.number))
      return "the node is behind a block that is final in the index";
    const isKnown = marks.length === 0 || findings.includes("same");
    return isKnown ? null : "the node returns no block that the index remembers";
  }
  const [first] = contradictions;
  if (first !== undefined) throw new OtherChainError(first);
  return "the node contradicted the index, and then itself";
}

/** `missing` proves nothing: the node may be late, or keep no old blocks. Rejects if the node does not answer. */
async function findOnChain(chain: PublicClient, mark: Mark): Promise<"same" | "missing" | Contradiction> {
  const block = await readBlock(chain, mark.number);
  if (block === null) return "missing";
  const isSame = block.timestamp === mark.timestamp && (mark.hash === null || mark.hash === block.hash);
  return isSame ? "same" : { mark, instead: block };
}

/** Blocks that stay known when Ponder's copy of the chain is pruned. */
const MARKS = `create schema if not exists indexer;
  create table if not exists indexer.chain_mark
    (chain_id int8, number int8, hash text not null, timestamp int8 not null, primary key (chain_id, number))`;

/** Remembers the chain's first block. */
export async function rememberFirstBlock(db: pg.Pool, chain: PublicClient): Promise<void> {
  await db.query(MARKS);
  // Two backends behind one address may disagree.
  const [once, again] = [await readBlock(chain, 0), await readBlock(chain, 0)];
  if (once === null || again === null || once.hash !== again.hash) return;
  const remember = "insert into indexer.chain_mark values ($1, 0, $2, $3) on conflict do nothing";
  await db.query(remember, [CHAIN_ID, once.hash, once.timestamp]);
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
  const marks: Mark[] = [];
  for (const table of ["indexer.chain_mark", "ponder_sync.blocks"]) {
    if (!(await exists(db, table))) continue;
    const known = `select number::float8, hash, timestamp::float8 from ${table} where chain_id = $1`;
    const { rows } = await db.query<Mark>(
      `(${known} order by ${table}.number limit 1) union (${known} order by ${table}.number desc limit 1)
        union (${known} and ${table}.number <= $2 order by ${table}.number desc limit 1)`,
      [CHAIN_ID, head],
    );
    marks.push(...rows);
  }
  return marks;
}

/** The last block that is final in an index, which Ponder never takes back; null if Ponder has not begun to fill it. */
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
