import { type Account, type Address, type Client, createClient, type Hex, http, parseEventLogs, zeroHash } from "viem";
import { getBlock, getChainId, waitForTransactionReceipt, writeContract } from "viem/actions";
import { escrowAbi } from "./abi.ts";
import { type FoundHold, findHold, holdsOf } from "./find-hold.ts";
import { type PaymentInfo, paymentId } from "./payment-info.ts";
import { readPayment } from "./payment-status.ts";
import { REFUNDABLE_AFTER_TEXT } from "./terms.ts";

/** The payment, by its terms, its id, or the transaction of its hold. */
export type RefundTarget =
  | { readonly escrow: Address; readonly paymentInfo: PaymentInfo }
  | { readonly escrow?: Address; readonly paymentId: Hex }
  | { readonly transaction: Hex };

export type RefundRequest = RefundTarget & {
  /** Sends the refund and pays the gas; the money always goes to the payer. */
  readonly account: Account;
  readonly client?: Client;
  /** JSON-RPC of the chain; this or `client`. */
  readonly rpcUrl?: string;
};

export interface SelfRefund {
  readonly id: Hex;
  readonly transaction: Hex;
  readonly payer: Address;
  /** Atomic units of USDC. */
  readonly amount: bigint;
  /** False if USDC refused the payer: the escrow then owes it, and `withdraw` pays it later. */
  readonly isPaid: boolean;
}

export type RefundRefusalCode = "not_found" | "ambiguous" | "too_early" | "already_released" | "already_refunded";

/** The payment cannot be refunded by the clock; nothing was sent. */
export class RefundRefused extends Error {
  readonly code: RefundRefusalCode;

  constructor(code: RefundRefusalCode, message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * Refunds a held payment to its payer without the arbiter, starting 30 minutes after the hold. Anyone may call it.
 * @throws RefundRefused if there is no such hold, or it is too early, or already over
 */
export async function selfRefund(request: RefundRequest): Promise<SelfRefund> {
  const client = clientOf(request);
  const { id, escrow, info } = await locate(client, request);
  await requireRefundable(client, escrow, id);
  const transaction = await writeContract(client, {
    account: request.account,
    chain: null,
    address: escrow,
    abi: escrowAbi,
    functionName: "refund",
    args: [info, zeroHash, "0x"],
  });
  const receipt = await waitForTransactionReceipt(client, { hash: transaction, pollingInterval: 250 });
  if (receipt.status !== "success") throw new Error(`The refund of ${id} reverted: see transaction ${transaction}.`);
  const credited = parseEventLogs({ abi: escrowAbi, eventName: "Credited", logs: receipt.logs });
  const isPaid = !credited.some(({ args }) => args.id === id);
  return { id, transaction, payer: info.payer, amount: info.maxAmount, isPaid };
}

function clientOf({ client, rpcUrl }: RefundRequest): Client {
  if (client !== undefined) return client;
  if (rpcUrl === undefined) throw new TypeError("selfRefund() needs rpcUrl or client to reach the chain of the hold.");
  return createClient({ transport: http(rpcUrl) });
}

async function locate(client: Client, target: RefundTarget): Promise<Pick<FoundHold, "id" | "escrow" | "info">> {
  if ("paymentInfo" in target) {
    const { escrow, paymentInfo: info } = target;
    return { id: paymentId({ chainId: await getChainId(client), escrow }, info), escrow, info };
  }
  if ("paymentId" in target) {
    const found = await findHold(client, { id: target.paymentId, escrow: target.escrow });
    return found ?? refuse("not_found", `The chain shows no hold for payment ${target.paymentId}.`);
  }
  const holds = await holdsOf(client, target.transaction);
  const [first] = holds;
  if (first === undefined) return refuse("not_found", `Transaction ${target.transaction} holds no payment.`);
  if (holds.length > 1) {
    const ids = holds.map(({ id }) => id).join(", ");
    return refuse("ambiguous", `Transaction ${target.transaction} holds several payments; name one of them: ${ids}.`);
  }
  return first;
}

/** By the chain's own clock, which the contract uses. */
async function requireRefundable(client: Client, escrow: Address, id: Hex): Promise<void> {
  const [{ status, refundableFrom }, { timestamp }] = await Promise.all([
    readPayment(client, escrow, id),
    getBlock(client, { blockTag: "latest" }),
  ]);
  if (status === "none") refuse("not_found", `The escrow ${escrow} holds no payment ${id}.`);
  if (status === "released") refuse("already_released", `Payment ${id} was released to its merchant.`);
  if (status === "refunded") refuse("already_refunded", `Payment ${id} has already been refunded to its payer.`);
  const seconds = refundableFrom - Number(timestamp);
  if (seconds > 0) {
    const from = new Date(refundableFrom * 1000).toISOString().replace(".000", "");
    const wait = `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
    refuse(
      "too_early",
      `Payment ${id} cannot be refunded until ${from}, ${REFUNDABLE_AFTER_TEXT} after its hold: in ${wait}.`,
    );
  }
}

function refuse(code: RefundRefusalCode, message: string): never {
  throw new RefundRefused(code, message);
}
