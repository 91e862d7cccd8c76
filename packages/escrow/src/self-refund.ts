import { type Account, type Address, type Client, createClient, type Hex, http, parseEventLogs, zeroHash } from "viem";
import { getBlock, getChainId, waitForTransactionReceipt, writeContract } from "viem/actions";
import { escrowAbi } from "./abi.ts";
import { readCustody } from "./custody.ts";
import { type FoundHold, findHold, findReclaim, holdsOf } from "./find-hold.ts";
import { type PaymentInfo, paymentId } from "./payment-info.ts";
import { readPayment } from "./payment-status.ts";
import { revertReason } from "./revert-reason.ts";
import { placeOf, REFUNDABLE_AFTER_TEXT } from "./terms.ts";

/** The payment, by its terms, its id, or the transaction of its hold; `escrow` is the escrow or the operator. */
export type RefundTarget =
  | { readonly escrow: Address; readonly paymentInfo: PaymentInfo }
  | { readonly escrow?: Address; readonly paymentId: Hex }
  | { readonly transaction: Hex };

export type RefundRequest = RefundTarget & {
  /** The account that sends the refund and pays the gas; the money always goes to the payer. */
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
  /**
   * False if USDC refused the payer: the escrow then owes it, and `withdraw` pays it later. An operator owes nothing.
   */
  readonly isPaid: boolean;
}

export type RefundRefusalCode =
  | "not_found"
  | "ambiguous"
  | "too_early"
  | "already_released"
  | "already_refunded"
  /** The payer reclaimed it itself, past the operator, after the payment's `authorizationExpiry`. */
  | "already_reclaimed"
  /** USDC refuses the transfer, and an operator cannot owe it; it may succeed later. */
  | "not_payable";

/** Thrown if the payment cannot be refunded by timeout; nothing was sent. */
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
  const held = await locate(client, request);
  const { id, escrow, info } = held;
  await requireRefundable(client, held);
  const transaction = await writeContract(client, {
    account: request.account,
    chain: null,
    address: escrow,
    abi: escrowAbi,
    functionName: "refund",
    args: [info, zeroHash, "0x"],
  }).catch((error: unknown) => notPayable(client, held, error));
  const receipt = await waitForTransactionReceipt(client, { hash: transaction, pollingInterval: 250 });
  if (receipt.status !== "success") {
    await requireRefundable(client, held);
    throw new Error(`The refund of ${id} reverted: see transaction ${transaction}.`);
  }
  const credited = parseEventLogs({ abi: escrowAbi, eventName: "Credited", logs: receipt.logs });
  const isPaid = !credited.some(({ args }) => args.id === id);
  return { id, transaction, payer: info.payer, amount: info.maxAmount, isPaid };
}

function clientOf({ client, rpcUrl }: RefundRequest): Client {
  if (client !== undefined) return client;
  if (rpcUrl === undefined) throw new TypeError("selfRefund() needs rpcUrl or client to reach the chain of the hold.");
  return createClient({ transport: http(rpcUrl) });
}

type Located = Omit<FoundHold, "transaction">;

async function locate(client: Client, target: RefundTarget): Promise<Located> {
  if ("paymentInfo" in target) {
    const { paymentInfo: info } = target;
    const contract = readCustody(client, target.escrow);
    const [chainId, { address: escrow, custody }] = await Promise.all([getChainId(client), contract]);
    return { id: paymentId(placeOf({ chainId, custody }), info), escrow, custody, info };
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

/** Uses the chain's own clock, as the contract does. */
async function requireRefundable(client: Client, { id, escrow, custody, info }: Located): Promise<void> {
  const [{ status, refundableFrom }, { timestamp }] = await Promise.all([
    readPayment(client, escrow, id),
    getBlock(client, { blockTag: "latest" }),
  ]);
  if (status === "none") refuse("not_found", `The escrow ${escrow} holds no payment ${id}.`);
  if (status === "released") refuse("already_released", `Payment ${id} was released to its merchant.`);
  if (status === "refunded") {
    // No payer can reclaim before the expiry, and an escrow that holds the money itself has no `reclaim`.
    const canBeReclaimed = custody !== escrow && Number(timestamp) >= info.authorizationExpiry;
    const reclaim = canBeReclaimed ? await findReclaim(client, { id, custody }) : null;
    if (reclaim === null) refuse("already_refunded", `Payment ${id} has already been refunded to its payer.`);
    refuse(
      "already_reclaimed",
      `The payer has taken payment ${id} back itself, from ${custody} (reclaim), in transaction ${reclaim}.`,
    );
  }
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

/** Reports a refund that the chain refuses although it is due: USDC does not pay the payer now. */
async function notPayable(client: Client, held: Located, error: unknown): Promise<never> {
  const { id, escrow, custody, info } = held;
  const reason = custody === escrow ? null : revertReason(error);
  if (reason === null) throw error;
  // Unless someone has just ended it.
  await requireRefundable(client, held);
  refuse(
    "not_payable",
    `Payment ${id} cannot be refunded to ${info.payer} at present: ${reason.text}. Nothing was sent; try again later.`,
  );
}

function refuse(code: RefundRefusalCode, message: string): never {
  throw new RefundRefused(code, message);
}
