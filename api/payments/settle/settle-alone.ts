import type { TransactionReceipt } from "viem";
import type { Address } from "../../platform/wallet.ts";
import type { Member, Shipment } from "../../platform/relayer/form.ts";
import type { Relayer } from "../../platform/relayer/relayer.ts";
import type { SignedTransfer } from "./settlement-batch.ts";
import { MOST_GAS } from "./simulation.ts";
import { transferData } from "./transfer.ts";

/** How long a submission waits for its transaction to be mined, in milliseconds. */
export const MINED_WITHIN_MS = 15_000;

/** A payment to settle, and what it settles. */
export interface Payment<Signed = SignedTransfer> extends Member {
  readonly transfer: Signed;
}

/**
 * Sends a payment in a transaction of its own, once. Resolves when it is mined, and rejects
 * with `TurnedAway` if nothing was sent and nothing will be.
 */
export async function settleAlone(
  relayer: Relayer,
  usdc: Address,
  { transfer, ...member }: Payment & Pick<Shipment, "lane">,
): Promise<void> {
  const data = transferData(transfer.authorization, transfer.signature);
  const transaction = await relayer.send({ to: usdc, data, gas: MOST_GAS, ...member });
  assertSucceeded(await relayer.waitFor(transaction, MINED_WITHIN_MS));
}

export function assertSucceeded({ status, transactionHash }: TransactionReceipt): void {
  if (status !== "success") throw new Error(`transaction ${transactionHash} reverted`);
}
