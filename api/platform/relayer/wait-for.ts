import { isHex, type TransactionReceipt } from "viem";
import type { Hex } from "../wallet.ts";
import { servedBy } from "../../escrow/outcome-batch.ts";
import { failedPlaces } from "../../payments/settle/settlement-batch.ts";
import type { Sender } from "./sender.ts";

/** Where blocks are made on demand, a transaction is in one at once. */
const AT_ONCE_MS = [3, 5, 8, 12, 20];
/** A node may know a block before it knows its receipts. */
const LONGEST_PAUSE_MS = 500;

type Finder = Pick<Sender, "ledger" | "client" | "counter">;

/** Waits for the receipt of a transaction or of its replacement, and records it. */
export async function waitFor(
  sender: Finder & Pick<Sender, "nextBlock">,
  hash: Hex,
  timeoutMs: number,
): Promise<TransactionReceipt> {
  const deadline = performance.now() + timeoutMs;
  const pauses = [...AT_ONCE_MS];
  let hashes: readonly Hex[] = [hash];
  for (;;) {
    for (const candidate of hashes) {
      const receipt = await outcomeOf(sender, candidate);
      if (receipt !== null) return receipt;
    }
    if (performance.now() > deadline) throw new Error(`transaction ${hash} was not mined within ${timeoutMs} ms`);
    const pause = pauses.shift();
    if (pause !== undefined) {
      await new Promise((resolve) => setTimeout(resolve, pause));
      continue;
    }
    await sender.nextBlock(LONGEST_PAUSE_MS);
    hashes = await sender.ledger.hashesOf(hash);
  }
}

/** Null while the transaction is in no block that the node knows. What is found is recorded. */
export async function receiptOf(sender: Finder, hash: Hex): Promise<TransactionReceipt | null> {
  const receipt = await knownReceipt(sender, hash);
  if (receipt !== null) await record(sender, receipt);
  return receipt;
}

/** A failure is recorded before anybody hears of it. Nothing waits for a success, which the upkeep would find as well. */
async function outcomeOf(sender: Finder, hash: Hex): Promise<TransactionReceipt | null> {
  const receipt = await knownReceipt(sender, hash);
  if (receipt === null) return null;
  const recorded = record(sender, receipt);
  if (isPlainSuccess(receipt)) recorded.catch(() => undefined);
  else await recorded;
  return receipt;
}

const knownReceipt = ({ client }: Pick<Finder, "client">, hash: Hex): Promise<TransactionReceipt | null> =>
  client.getTransactionReceipt({ hash }).catch(() => null);

const isPlainSuccess = (receipt: TransactionReceipt): boolean =>
  receipt.status === "success" && failedPlaces(receipt).length === 0 && servedBy(receipt) === null;

/** Notes where a transaction was mined, and what it did not do. The process that is the first to note it counts it. */
export async function record({ ledger, counter }: Omit<Finder, "client">, receipt: TransactionReceipt): Promise<void> {
  const { transactionHash: hash, blockNumber: block, blockHash, status, gasUsed: gas } = receipt;
  const reverted = status === "reverted";
  const unserved = { failed: failedPlaces(receipt), served: servedBy(receipt) };
  const feeWei = feeOf(receipt);
  const purposes = await ledger.mined({ hash, block, blockHash, reverted, feeWei, ...unserved });
  if (purposes === null) return;
  const { all: payments, failed } = purposes;
  counter?.relayed({ payments, failed: reverted ? payments : failed, gas, feeWei });
}

/** OP-stack chains, Base among them, charge for data on their parent chain besides gas (docs.optimism.io). */
function feeOf({ gasUsed, effectiveGasPrice, ...more }: TransactionReceipt & { readonly l1Fee?: unknown }): bigint {
  const { l1Fee } = more;
  return gasUsed * effectiveGasPrice + (isHex(l1Fee) ? BigInt(l1Fee) : 0n);
}
