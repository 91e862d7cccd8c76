import type { TransactionReceipt } from "viem";
import type { Hex } from "../../../kernel/wallet.ts";
import { servedBy } from "../outcome-batch.ts";
import { failedPlaces } from "../settlement-batch.ts";
import type { Sender } from "./sender.ts";

const LONGEST_PAUSE_MS = 500;

/** Polls for the receipt of a transaction or of its replacement, and records it. */
export async function waitFor(
  { ledger, client }: Pick<Sender, "ledger" | "client">,
  hash: Hex,
  timeoutMs: number,
): Promise<TransactionReceipt> {
  const deadline = Date.now() + timeoutMs;
  let hashes: readonly Hex[] = [hash];
  for (let pause = 5; ; pause = Math.min(pause * 1.5, LONGEST_PAUSE_MS)) {
    for (const candidate of hashes) {
      const receipt = await receiptOf({ client, ledger }, candidate);
      if (receipt !== null) return receipt;
    }
    if (Date.now() > deadline) throw new Error(`transaction ${hash} was not mined within ${timeoutMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, pause));
    if (pause === LONGEST_PAUSE_MS) hashes = await ledger.hashesOf(hash);
  }
}

/** Null while the transaction is in no block that the node knows. What is found is recorded. */
export async function receiptOf(
  { ledger, client }: Pick<Sender, "ledger" | "client">,
  hash: Hex,
): Promise<TransactionReceipt | null> {
  const receipt = await client.getTransactionReceipt({ hash }).catch(() => null);
  if (receipt !== null) await record(ledger, receipt);
  return receipt;
}

/** Notes where a transaction was mined, and what it did not do. */
export async function record(ledger: Sender["ledger"], receipt: TransactionReceipt): Promise<void> {
  const { transactionHash: hash, blockNumber: block, blockHash, status } = receipt;
  const unserved = { failed: failedPlaces(receipt), served: servedBy(receipt) };
  await ledger.mined({ hash, block, blockHash, reverted: status === "reverted", ...unserved });
}
