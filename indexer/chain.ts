import pg from "pg";
import { BlockNotFoundError, createPublicClient, type Hex, http, type PublicClient } from "viem";
import { MAIN_NETWORK, NETWORKS } from "../api/kernel/networks.ts";
import { ponderSchemas } from "./schemas.ts";

const { chainId: CHAIN_ID } = NETWORKS[MAIN_NETWORK];
/** A node whose head is older than this is behind the chain; Base makes a block every 2 seconds. */
const FRESH_SECONDS = 60;

/** The node serves another chain: a setting is wrong, and no restart will fix it. */
export class WrongChainError extends Error {
  override readonly name = "WrongChainError";
}

export interface Head {
  readonly number: number;
  readonly timestamp: number;
}

export const connectChain = (rpcUrl: string): PublicClient =>
  createPublicClient({ transport: http(rpcUrl, { timeout: 10_000, retryCount: 0 }) });

/** The node's newest block; the node must serve Base. */
export async function readHead(chain: PublicClient): Promise<Head> {
  const chainId = await chain.getChainId();
  if (chainId !== CHAIN_ID) {
    throw new WrongChainError(`BASE_RPC_URL is wrong: expected a node of chain ${CHAIN_ID}, got chain ${chainId}`);
  }
  const { number, timestamp } = await chain.getBlock({ blockTag: "latest" });
  return { number: Number(number), timestamp: Number(timestamp) };
}

/** A block as the index remembers it; one taken from a checkpoint has only a time. */
interface Mark {
  readonly number: number;
  readonly hash: Hex | null;
  readonly timestamp: number;
}

async function highestSyncedBlock(db: pg.Pool, upTo: number): Promise<readonly Mark[]> {
  const synced = await db.query("select to_regclass('ponder_sync.blocks') is not null as exists");
  if (!synced.rows[0]?.exists) return [];
  const { rows } = await db.query<{ number: string; hash: Hex; timestamp: string }>(
    "select number, hash, timestamp from ponder_sync.blocks where chain_id = $1 and number <= $2 order by number desc limit 1",
    [CHAIN_ID, upTo],
  );
  return rows.map(({ number, hash, timestamp }) => ({ number: Number(number), hash, timestamp: Number(timestamp) }));
}

/**
 * Where each index permanently stands. A quiet chain leaves nothing in `ponder_sync.blocks`, but Ponder still refuses
 * to go back before this.
 */
async function finalizedMarks(db: pg.Pool): Promise<readonly Mark[]> {
  const marks = (await ponderSchemas(db)).map(async (schema) => {
    const { rows } = await db.query<{ checkpoint: string }>(
      `select finalized_checkpoint as checkpoint from ${pg.escapeIdentifier(schema)}._ponder_checkpoint where chain_id = $1`,
      [CHAIN_ID],
    );
    return rows.map(({ checkpoint }) => ({ ...decodeCheckpoint(checkpoint), hash: null }));
  });
  return (await Promise.all(marks)).flat();
}

/** Ponder's checkpoint: 10 digits of Unix time, 16 of chain id, 16 of block number, then the place in the block. */
const decodeCheckpoint = (checkpoint: string) => ({
  timestamp: Number(checkpoint.slice(0, 10)),
  number: Number(checkpoint.slice(26, 42)),
});

type Finding = "same" | "other" | "missing";

async function findOnChain(chain: PublicClient, mark: Mark): Promise<Finding> {
  const block = await chain.getBlock({ blockNumber: BigInt(mark.number) }).catch((error: unknown) => {
    if (error instanceof BlockNotFoundError) return null;
    throw error;
  });
  if (block === null) return "missing";
  return Number(block.timestamp) === mark.timestamp && (mark.hash === null || mark.hash === block.hash)
    ? "same"
    : "other";
}

/**
 * Whether the index was made from this chain. Ponder keys its copy by chain id alone: on a local chain that was wiped
 * or rolled back it would stop, or keep the dead fork's rows permanently.
 *
 * `behind`: the node lacks a block that is final here and its head is old, so it may just be late; wait, drop nothing.
 */
export async function compareWithChain(
  db: pg.Pool,
  chain: PublicClient,
  head: Head,
): Promise<"same" | "other" | "behind"> {
  const marks = [...(await highestSyncedBlock(db, Number.MAX_SAFE_INTEGER)), ...(await finalizedMarks(db))];
  const findings = await Promise.all(marks.map((mark) => findOnChain(chain, mark)));
  if (findings.includes("other")) return "other";
  if (!findings.includes("missing")) return "same";
  if (head.timestamp >= Date.now() / 1000 - FRESH_SECONDS) return "other";
  const [shared] = await highestSyncedBlock(db, head.number);
  return shared !== undefined && (await findOnChain(chain, shared)) === "other" ? "other" : "behind";
}
