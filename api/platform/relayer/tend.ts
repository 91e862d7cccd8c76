import { hex } from "../db/connection.ts";
import type { Block, Unmined } from "./ledger.ts";
import { createResend } from "./resend.ts";
import type { Sender } from "./sender.ts";
import { receiptOf } from "./wait-for.ts";

/** Bounds of one pass, whatever there is to do. */
const EXPLAINED_A_PASS = 64;
const BLOCKS_A_PASS = 64;

/** How often to ask what is final: less and less often while nothing is. */
const FINALITY = { firstMs: 5_000, lastMs: 15_000 };

/** The upkeep of one account, by one process at a time. Every pass is bounded, whatever has piled up. */
export function createUpkeep(sender: Sender): () => Promise<void> {
  const { ledger, client, address } = sender;
  const resend = createResend(sender);
  const finality = { at: 0, pauseMs: FINALITY.firstMs };
  return async () => {
    const { unmined, unfinal } = await ledger.kinds();
    const isDue = (unmined || unfinal) && performance.now() >= finality.at;
    if (!(unmined || isDue) || !(await ledger.claim())) return;
    try {
      const count = await client.getTransactionCount({ address });
      if (unmined) {
        await resend(count);
        await explain(sender, count);
      }
      if (!isDue) return;
      const ended = await finalise(sender, count);
      finality.pauseMs = ended > 0 ? FINALITY.firstMs : Math.min(finality.pauseMs * 2, FINALITY.lastMs);
      finality.at = ended < BLOCKS_A_PASS ? performance.now() + finality.pauseMs : 0;
    } finally {
      await ledger.release();
    }
  };
}

/** Finds the blocks of transactions whose nonces are over. */
async function explain(sender: Sender, count: number): Promise<void> {
  const rows = await sender.ledger.unexplained(count, EXPLAINED_A_PASS);
  const unexplained = await Promise.all(rows.map(async (row) => ((await isMined(sender, row)) ? [] : [row.id])));
  if (unexplained.flat().length > 0) await sender.ledger.tended(unexplained.flat());
}

async function isMined(sender: Sender, row: Unmined): Promise<boolean> {
  const receipts = await Promise.all(row.hashes.map((hash) => receiptOf(sender, hex(hash))));
  return receipts.some((receipt) => receipt !== null);
}

/**
 * Ends what is in a final block, and looks again for what a reorganization has moved. Returns how many blocks it ended.
 */
async function finalise(sender: Sender, count: number): Promise<number> {
  const { client, ledger, address, log } = sender;
  // A node that has just loaded its chain may not know a final block yet; until it does, nothing is final.
  const final = await client.getTransactionCount({ address, blockTag: "finalized" }).catch(() => 0);
  const blocks = await ledger.blocks({ from: 0, below: final }, BLOCKS_A_PASS);
  const ending = await standing(sender, blocks);
  if (ending.there.length > 0) await ledger.finalise(ending.there, final);
  const doubtful = { from: count, below: Number.MAX_SAFE_INTEGER };
  const moved = await standing(sender, await ledger.blocks(doubtful, BLOCKS_A_PASS));
  const gone = [...ending.gone, ...moved.gone];
  if (gone.length > 0) await ledger.reopen(gone);
  // A final nonce is over: either our transaction was mined, or one sent from elsewhere with the same key took it.
  for (const row of await ledger.unexplained(final, EXPLAINED_A_PASS)) {
    if (await isMined(sender, row)) continue;
    log.warn({ nonce: row.nonce }, "another sender used a nonce of the relayer's key");
    await ledger.lost(row.id);
  }
  return blocks.length;
}

/** Which of these blocks the chain has, and in place of which it has others. A block that cannot be read is neither. */
async function standing({ client }: Sender, blocks: readonly Block[]) {
  const found = await Promise.all(
    blocks.map(async ({ number, hash }) => {
      const block = await client.getBlock({ blockNumber: number }).catch(() => null);
      return { hash, there: block === null ? null : block.hash === hash };
    }),
  );
  const having = (there: boolean) => found.filter((one) => one.there === there).map(({ hash }) => hash);
  return { there: having(true), gone: having(false) };
}
