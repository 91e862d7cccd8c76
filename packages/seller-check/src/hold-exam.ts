import { setTimeout as sleep } from "node:timers/promises";
import { privateKeyToAccount } from "viem/accounts";
import { chainLedger } from "./chain-ledger.ts";
import { type ExamReport, examine } from "./exam/examine.ts";
import { httpTransport } from "./http-transport.ts";
import type { Order } from "./order.ts";

/**
 * Examines a seller with a key and a node, as the command does with its arguments.
 * @throws Error if the chain cannot be read; nothing is judged then
 */
export async function holdExam(order: Omit<Order, "json">): Promise<ExamReport> {
  const { resource, other, rpcUrl, privateKey, asset, ceiling } = order;
  const ledger = await chainLedger(rpcUrl);
  const payable = { network: ledger.network, asset, ceiling };
  const parts = { ledger, payer: privateKeyToAccount(privateKey), transport: httpTransport(), sleep };
  return examine({ resource, other, payable }, parts);
}
