import type { PublicClient, TransactionReceipt } from "viem";
import type { Address } from "../wallet.ts";
import type { Failed, FailedPayment } from "../../payments/chain.ts";
import { readAtBlock } from "./read-at-block.ts";
import { isBatch } from "../../payments/settle/settlement-batch.ts";
import { usdcCalls } from "./usdc-calls.ts";

interface Asked extends FailedPayment {
  readonly usdc: Address;
}

/**
 * Reads what is left of a payment whose transaction was mined without settling it. Rejects if the node has not seen the
 * transaction's block.
 */
export async function afterFailure(client: PublicClient, asked: Asked): Promise<Failed> {
  const { usdc, payer, nonce, transaction } = asked;
  const receipt = await client.getTransactionReceipt({ hash: transaction });
  const state = usdcCalls(usdc).isUsed(payer, nonce);
  const { number, of } = await readAtBlock(client, { calls: [state] });
  if (number < receipt.blockNumber) throw new Error("the node has not seen the block of a transaction that failed");
  if (of(state)) return { isUnused: false, isPayersDoing: false };
  return { isUnused: true, isPayersDoing: await isPayersDoing(client, asked, receipt) };
}

/**
 * Only what a payer controls is its doing: its balance, and the code of its account. A block outside of the window, USDC's
 * own refusals, and a batch that reverted as a whole are not. A failure that the block's state does not explain is not either.
 */
async function isPayersDoing(client: PublicClient, asked: Asked, receipt: TransactionReceipt): Promise<boolean> {
  if (receipt.status === "reverted" && isBatch(receipt.to)) return false;
  const read = () => causesAt(client, asked, receipt.blockNumber);
  // The first node may not have the block yet.
  const found = await read()
    .catch(read)
    .catch(() => null);
  if (found === null) return false;
  const { time, balance, isRefusedByUsdc, hasCode } = found;
  const isInTime = time > asked.validAfter && time < asked.validBefore;
  return isInTime && !isRefusedByUsdc && (hasCode || balance < asked.value);
}

async function causesAt(client: PublicClient, { usdc, payer, payTo }: Asked, blockNumber: bigint) {
  const { balanceOf, isPaused, isBlacklisted } = usdcCalls(usdc);
  const balance = balanceOf(payer);
  const refusals = [isPaused(), isBlacklisted(payer), isBlacklisted(payTo)];
  const [{ time, of }, code] = await Promise.all([
    readAtBlock(client, { calls: [balance, ...refusals], blockNumber }),
    client.getCode({ address: payer, blockNumber }),
  ]);
  const hasCode = code !== undefined && code !== "0x";
  return { time, balance: of(balance), isRefusedByUsdc: refusals.some(of), hasCode };
}
