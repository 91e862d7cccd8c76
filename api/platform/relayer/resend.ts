import { parseTransaction, TransactionNotFoundError } from "viem";
import { keccak256 } from "../chain/keccak.ts";
import { hex } from "../db/connection.ts";
import { ask } from "../db/message.ts";
import { broadcast } from "./broadcast.ts";
import { spendable } from "./conditions.ts";
import { type Fees, replacementFor } from "./fees.ts";
import type { Unmined } from "./ledger.ts";
import { PLACES } from "./places.ts";
import type { Sender } from "./sender.ts";

const PASS_MS = 8_000;
/** A transaction that was broadcast a moment ago may not be known to every node yet. */
const FRESH_MS = 2_000;
/** While the account's count stands still, everything is sent again after two blocks, then after twice as many, up to this. */
const STILL = { firstBlocks: 2n, mostBlocks: 16n };

/** What a pass has seen of the chain. */
interface Seen {
  readonly count: number;
  readonly block: bigint;
  /** By this process's clock, in milliseconds. */
  readonly at: number;
}

/** Since when the account's count has stood still, and for how many blocks before everything is sent again. */
interface Still {
  readonly since: bigint;
  readonly blocks: bigint;
}

/**
 * Sends again what the chain lacks, lowest nonce first, so that a node that forgot them all can mine them all. Only when
 * something says that they need it:
 *
 * - the account's count has moved, and what was broadcast before the last pass was left behind;
 * - two blocks came, then four, then eight, and the count did not move;
 * - the node does not know one of them, or the base fee is higher than it may pay: asked once for each block.
 *
 * What offers less than the market asks is replaced by one that offers enough.
 */
export function createResend(sender: Sender): (count: number) => Promise<void> {
  const { client, ledger } = sender;
  let last: Seen | null = null;
  let still: Still = { since: 0n, blocks: STILL.firstBlocks };
  /** In which block, of which transactions, it was last asked whether they are left out. */
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
    // What is remembered may be the base fee of an earlier block.
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

/** Whether the node does not know it, or no block could take it at the moment. */
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

/** False if the node stopped answering. */
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

/** What a transaction should offer instead; null if the same bytes will do. */
async function replacing({ conditions, ledger, pool, open }: Sender, count: number) {
  const [now, { gas }] = await Promise.all([conditions(), ask(pool, ledger.unminedIn("batch", count))]);
  const affordable = gas === 0n ? 0n : spendable(now) / gas;
  return (row: Unmined): Fees | null => {
    const { maxFeePerGas = 0n, maxPriorityFeePerGas = 0n } = parseTransaction(open(row));
    return replacementFor({ maxFeePerGas, maxPriorityFeePerGas }, now.market, affordable);
  };
}

/** The same call, nonce and gas limit at other fees, stored before it is sent. */
async function replace(sender: Sender, row: Unmined, fees: Fees): Promise<boolean> {
  const old = parseTransaction(sender.open(row));
  const nonce = Number(row.nonce);
  const call = { to: old.to ?? "0x", data: old.data ?? "0x" } as const;
  const raw = sender.sign(call, { nonce, gas: old.gas ?? 0n, fees });
  const by = { hash: keccak256(raw), raw: sender.close(raw, nonce), maxFee: fees.maxFeePerGas };
  if (!(await sender.ledger.replaced(row, by))) return true;
  sender.counter?.replaced();
  return broadcast(sender, raw);
}
