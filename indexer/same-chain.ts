import pg from "pg";
import type { PublicClient } from "viem";
import type { Header } from "../api/platform/chain/log-answers.ts";
import { readBlock } from "./chain.ts";
import { CHAIN_ID, RPC_VARIABLE } from "./ledger.ts";
import { exists, ponderSchemas, type Queryable } from "./schemas.ts";

/** A block that the index has stored. A block from a checkpoint has no hash. */
interface Mark extends Pick<Header, "block" | "time"> {
  readonly hash: string | null;
}

const inWords = ({ hash, time }: Mark): string =>
  `${hash === null ? "" : `${hash}, `}of ${new Date(time * 1000).toISOString().replace(".000", "")}`;

/**
 * Returns the reason that Ponder must not continue this index now, or null if it was made from the node's chain. Ponder
 * identifies its copy only by chain id, so on a different chain with the same id it would stop, or keep the old rows
 * forever. Data is never dropped for that reason.
 *
 * A null, an error, or a timeout proves nothing, because providers lag, forget, and fail. Rejects if the node does not
 * respond.
 */
export async function whyNotSameChain(db: pg.Pool, client: PublicClient, head: Header): Promise<string | null> {
  const finals: Mark[] = [];
  for (const schema of await ponderSchemas(db)) {
    const mark = await finalizedMark(db, schema);
    if (mark !== null) finals.push(mark);
  }
  const marks = [...(await storedMark(db, head.block)), ...finals];
  const found = await Promise.all(marks.map(async (mark) => ({ mark, block: await readBlock(client, mark.block) })));
  for (const { mark, block } of found) {
    const isSame = block?.time === mark.time && (mark.hash === null || mark.hash === block.hash);
    if (block !== null && !isSame)
      return `the index is not from the node's chain: its block ${mark.block} is ${inWords(mark)}, and the node returned ${inWords(block)}. If ${RPC_VARIABLE} is right, drop the index with npm run index:drop`;
  }
  if (finals.some(({ block }) => block > head.block)) return "the node is behind a block that is final in the index";
  const isUnknown = marks.length > 0 && found.every(({ block }) => block === null);
  return isUnknown ? "the node does not return any block that the index has stored" : null;
}

/** Returns the newest block in Ponder's copy up to this head. Its hash commits to all blocks before it. */
async function storedMark(db: Queryable, head: number): Promise<readonly Mark[]> {
  if (!(await exists(db, "ponder_sync.blocks"))) return [];
  const { rows } = await db.query<Mark>(
    `select number::float8 as block, hash, timestamp::float8 as time from ponder_sync.blocks
      where chain_id = $1 and number <= $2 order by number desc limit 1`,
    [CHAIN_ID, head],
  );
  return rows;
}

/** Returns the last final block of an index, which Ponder never reverts, or null if Ponder has not begun to fill it. */
export async function finalizedMark(db: Queryable, schema: string): Promise<Mark | null> {
  const table = `${pg.escapeIdentifier(schema)}._ponder_checkpoint`;
  if (!(await exists(db, table))) return null;
  const { rows } = await db.query<{ checkpoint: string }>(
    `select finalized_checkpoint as checkpoint from ${table} where chain_id = $1 order by 1 desc limit 1`,
    [CHAIN_ID],
  );
  // Ponder's checkpoint has 10 digits of Unix time, 16 of chain id, 16 of block number, then the position in the block.
  const at = rows[0]?.checkpoint;
  return at === undefined ? null : { block: Number(at.slice(26, 42)), hash: null, time: Number(at.slice(0, 10)) };
}
