import { parseTransaction, TransactionNotFoundError } from "viem";
import { keccak256 } from "../chain/typed-data.ts";
import { ask, hex } from "../db/connection.ts";
import { type Fees, replacementFor, spendable } from "./fees.ts";
import { PLACES } from "./places.ts";
import { broadcast, receiptOf } from "./send.ts";
import type { Sender } from "./sender.ts";
import type { Block, Unmined } from "./store.ts";

const PASS_MS = 8_000;
/** Some nodes may not know a transaction this recent yet. */
const FRESH_MS = 2_000;
/**
 * While the account's count does not change, everything is sent again after two blocks, then after twice as many, up to
 * this.
 */
const STILL = { firstBlocks: 2n, mostBlocks: 16n };

/** The chain as seen by one pass. */
interface Seen {
  readonly count: number;
  readonly block: bigint;
  /** The time by this process's clock, in milliseconds. */
  readonly at: number;
}

/**
 * The block since which the account's count has not changed, and the number of blocks until everything is sent again.
 */
interface Still {
  readonly since: bigint;
  readonly blocks: bigint;
}

/**
 * Creates the function that rebroadcasts transactions that the chain lacks, lowest nonce first, so that a node that
 * forgot them all can mine them all. It does so only on evidence:
 *
 * - the account's count has changed, and a transaction that was broadcast before the last pass was left behind;
 * - the count has not changed for two blocks, then four, then eight;
 * - the node does not know one of them, or the base fee is above its limit, checked once per block.
 *
 * A transaction that offers less than the market requires is replaced.
 */
function createResend(sender: Sender): (count: number) => Promise<void> {
  const { client, ledger } = sender;
  let last: Seen | null = null;
  let still: Still = { since: 0n, blocks: STILL.firstBlocks };
  /** The block and the transactions of the last check for left-out ones. */
  let asked = "";

  const isBehind = ([lowest]: readonly Unmined[], now: Seen): boolean => {
    if (last === null || now.count !== last.count) {
      still = { since: now.block, blocks: STILL.firstBlocks };
      return last !== null && lowest !== undefined && lowest.tendedMs > now.at - last.at;
    }
    if (now.block - still.since < still.blocks) return false;
    const blocks = still.blocks * 2n;
    still = { since: now.block, blocks: blocks < STILL.mostBlocks ? blocks : STILL.mostBlocks };
    return true;
  };
  const leftOut = async (rows: readonly Unmined[], { block }: Seen): Promise<readonly Unmined[]> => {
    const asking = [block, ...rows.map(({ id }) => id)].join();
    if (asking === asked) return [];
    const aged = rows.filter(({ tendedMs }) => tendedMs >= FRESH_MS);
    // The cached base fee may belong to an earlier block.
    if (aged.length > 0) sender.conditions.forget();
    const areLeftOut = await Promise.all(aged.map((row) => isLeftOut(sender, row)));
    if (aged.length === rows.length) asked = asking;
    return aged.filter((_, at) => areLeftOut[at]);
  };

  return async (count) => {
    const rows = await ledger.unmined(count, PLACES);
    if (rows.length === 0) {
      last = null;
      return;
    }
    const block = await client.getBlockNumber({ cacheTime: 0 });
    const now = { count, block, at: performance.now() };
    const due = isBehind(rows, now) ? rows : await leftOut(rows, now);
    last = now;
    if (due.length > 0 && !(await sendAgain(sender, due, count))) asked = "";
  };
}

/** Whether the node does not know it, or its fee is too low for the current block. */
async function isLeftOut({ client, conditions }: Sender, { hashes, maxFee }: Unmined): Promise<boolean> {
  const hash = hex(hashes.at(-1) ?? Buffer.alloc(32));
  const [isKnown, { market }] = await Promise.all([
    client.getTransaction({ hash }).then(
      () => true,
      (error: unknown) => {
        if (error instanceof TransactionNotFoundError) return false;
        throw error;
      },
    ),
    conditions(),
  ]);
  return !isKnown || BigInt(maxFee) < market.baseFee;
}

/** Returns false if the node stopped answering. */
async function sendAgain(sender: Sender, rows: readonly Unmined[], count: number): Promise<boolean> {
  const until = performance.now() + PASS_MS;
  const offer = await replacing(sender, count);
  const sent: string[] = [];
  for (const row of rows) {
    if (performance.now() > until) break;
    const fees = offer(row);
    const answered = fees === null ? await broadcast(sender, sender.open(row)) : await replace(sender, row, fees);
    if (!answered) break;
    sent.push(row.id);
  }
  if (sent.length > 0) await sender.ledger.tended(sent);
  return sent.length === rows.length;
}

/** Returns the new offer of a transaction; null if the same bytes are enough. */
async function replacing({ conditions, ledger, pool, open }: Sender, count: number) {
  const [now, { gas }] = await Promise.all([conditions(), ask(pool, ledger.unminedIn("batch", count))]);
  const affordable = gas === 0n ? 0n : spendable(now) / gas;
  return (row: Unmined): Fees | null => {
    const { maxFeePerGas = 0n, maxPriorityFeePerGas = 0n } = parseTransaction(open(row));
    return replacementFor({ maxFeePerGas, maxPriorityFeePerGas }, now.market, affordable);
  };
}

/** Signs the same call, nonce, and gas limit at other fees, and stores it before it is sent. */
async function replace(sender: Sender, row: Unmined, fees: Fees): Promise<boolean> {
  const old = parseTransaction(sender.open(row));
  const nonce = Number(row.nonce);
  const call = { to: old.to ?? "0x", data: old.data ?? "0x" } as const;
  const raw = await sender.sign(call, { nonce, gas: old.gas ?? 0n, fees }).catch((error: unknown) => {
    sender.log.warn(
      { err: error, nonce },
      "a stuck transaction could not be signed at higher fees; the original is sent again",
    );
    return null;
  });
  if (raw === null) return broadcast(sender, sender.open(row));
  const by = { hash: keccak256(raw), raw: sender.close(raw, nonce), maxFee: fees.maxFeePerGas };
  if (!(await sender.ledger.replaced(row, by))) return true;
  sender.counter?.replaced();
  return broadcast(sender, raw);
}

/** The limits of one pass, whatever the backlog. */
const EXPLAINED_A_PASS = 64;
const BLOCKS_A_PASS = 64;

/** How often to check finality: less and less often while nothing becomes final. */
const FINALITY = { firstMs: 5_000, lastMs: 15_000 };

/** Creates the upkeep of one account, by one process at a time. Every pass is bounded, whatever the backlog. */
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
      const ended = await finalize(sender, count);
      finality.pauseMs = ended > 0 ? FINALITY.firstMs : Math.min(finality.pauseMs * 2, FINALITY.lastMs);
      finality.at = ended < BLOCKS_A_PASS ? performance.now() + finality.pauseMs : 0;
    } finally {
      await ledger.release();
    }
  };
}

/** Finds the blocks of transactions whose nonces are used. */
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
 * Completes transactions in final blocks, and looks again for those that a reorganization has moved. Returns the number
 * of completed blocks.
 */
async function finalize(sender: Sender, count: number): Promise<number> {
  const { client, ledger, address, log } = sender;
  // A node that has just loaded its chain may not know a final block yet. Until it does, none is final.
  const final = await client.getTransactionCount({ address, blockTag: "finalized" }).catch(() => 0);
  const blocks = await ledger.blocks({ from: 0, below: final }, BLOCKS_A_PASS);
  const ending = await presence(sender, blocks);
  if (ending.there.length > 0) await ledger.finalize(ending.there, final);
  const doubtful = { from: count, below: Number.MAX_SAFE_INTEGER };
  const moved = await presence(sender, await ledger.blocks(doubtful, BLOCKS_A_PASS));
  const gone = [...ending.gone, ...moved.gone];
  if (gone.length > 0) await ledger.reopen(gone);
  // A final nonce is used: either our transaction was mined, or one sent elsewhere with the same key.
  for (const row of await ledger.unexplained(final, EXPLAINED_A_PASS)) {
    if (await isMined(sender, row)) continue;
    log.warn({ nonce: row.nonce }, "another sender used a nonce of the relayer's key");
    await ledger.lost(row.id);
  }
  return blocks.length;
}

/**
 * Returns which of these blocks are on the chain, and which were replaced by others. A block that cannot be read is in
 * neither list.
 */
async function presence({ client }: Sender, blocks: readonly Block[]) {
  const found = await Promise.all(
    blocks.map(async ({ number, hash }) => {
      const block = await client.getBlock({ blockNumber: number }).catch(() => null);
      return { hash, there: block === null ? null : block.hash === hash };
    }),
  );
  const having = (there: boolean) => found.filter((one) => one.there === there).map(({ hash }) => hash);
  return { there: having(true), gone: having(false) };
}
