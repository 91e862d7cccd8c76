import type pg from "pg";
import { BlockNotFoundError, type Hex } from "viem";
import { type AnvilClient, anvilClient } from "./anvil.ts";
import type { DeploymentTarget } from "./deployments.ts";
import { withClient } from "./postgres.ts";

const FINAL_BLOCKS = `SELECT DISTINCT block_number::int AS number, block_hash AS hash FROM payment
  WHERE chain = $1 AND state = 'fulfilled' AND final_at IS NOT NULL ORDER BY number DESC`;
const WATCH_AGAIN = `UPDATE payment SET final_at = NULL, look_at = now()
  WHERE chain = $1 AND state = 'fulfilled' AND final_at IS NOT NULL AND block_number > $2`;
const SEND_AGAIN = `UPDATE relay
  SET state = 'sent', mined_hash = NULL, block_number = NULL, block_hash = NULL, reverted = NULL
  WHERE chain = $1 AND sender = $2 AND state IN ('mined', 'final') AND nonce >= $3`;
/** Their nonces are free again. */
const FORGET_LOST = "DELETE FROM relay WHERE chain = $1 AND sender = $2 AND state = 'lost' AND nonce >= $3";
/** Final payments stay final; lost ones are carried to the chain again. */
const SETTLE_AGAIN = "UPDATE escrow_task SET state = 'open', look_at = now() WHERE state = 'final' AND chain = $1";
const END_LEASES = "UPDATE payment SET lease_until = '-infinity' WHERE lease_until > now()";

/**
 * Reopens what the database considers final but a local chain has lost: the chain is saved every second, and a burst of
 * payments makes blocks final sooner. Settlements are watched again until they are final or marked as reversed. The
 * relayer resends its lost transactions, because their nonces count as used and every later one would wait for them.
 * Nothing else is using this database yet, so leases left by a killed process are over too.
 */
export async function takeBackLostBlocks(
  ownerUrl: string,
  targets: readonly DeploymentTarget[],
  senders: readonly Hex[],
): Promise<void> {
  await withClient(ownerUrl, async (db) => {
    for (const { rpcUrl, network } of targets) {
      const chain = anvilClient(rpcUrl, network);
      await db.query(WATCH_AGAIN, [network.chainId, await lastStandingBlock(db, chain, network.chainId)]);
      await db.query(SETTLE_AGAIN, [network.chainId]);
      for (const address of senders) {
        const count = await chain.getTransactionCount({ address });
        const values = [network.chainId, Buffer.from(address.slice(2), "hex"), count];
        await db.query(FORGET_LOST, values);
        await db.query(SEND_AGAIN, values);
      }
    }
    await db.query(END_LEASES);
  });
}

/** The newest block with a final settlement that the chain still has; all earlier settlements stand too. */
async function lastStandingBlock(db: pg.Client, chain: AnvilClient, chainId: number): Promise<number> {
  const { rows } = await db.query<{ number: number; hash: Buffer }>(FINAL_BLOCKS, [chainId]);
  for (const { number, hash } of rows) {
    if ((await hashOf(chain, number)) === `0x${hash.toString("hex")}`) return number;
  }
  return -1;
}

async function hashOf(chain: AnvilClient, number: number): Promise<Hex | null> {
  try {
    return (await chain.getBlock({ blockNumber: BigInt(number) })).hash;
  } catch (error) {
    if (error instanceof BlockNotFoundError) return null;
    throw error;
  }
}
