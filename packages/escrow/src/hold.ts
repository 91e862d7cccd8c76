import {
  type Address,
  BaseError,
  type Client,
  type Hex,
  InsufficientFundsError,
  isAddressEqual,
  type LocalAccount,
  parseEventLogs,
} from "viem";
import { getTransactionReceipt, simulateContract, waitForTransactionReceipt, writeContract } from "viem/actions";
import { escrowAbi } from "./abi.ts";
import { findHold } from "./find-hold.ts";
import { type PaymentInfo, paymentId } from "./payment-info.ts";
import { type PaymentState, readPayment } from "./payment-status.ts";
import { type RevertReason, revertReason } from "./revert-reason.ts";
import { isWrapped } from "./signature-forms.ts";
import { type EscrowFacts, LEAST_SECONDS_VALID, placeOf } from "./terms.ts";

interface HoldPlace {
  readonly id: Hex;
  readonly escrow: Address;
}

/** The arguments of `authorize`. */
export interface HoldRequest {
  readonly info: PaymentInfo;
  readonly signature: Hex;
  readonly escrow: EscrowFacts;
  /** The gas limit of the transaction. */
  readonly gas: bigint;
}

/**
 * Sends `authorize` and returns its transaction, which need not be mined yet. A payer can be a contract that uses all
 * the gas it gets, so send it with `gas` and do not estimate.
 */
export type SendHold = (request: HoldRequest) => Promise<Hex>;

/** The state of a payment after every attempt to hold it. */
export type HoldOutcome =
  | {
      readonly type: "held";
      readonly transaction: Hex;
      /** Unix seconds from which anyone may refund it. */
      readonly refundableFrom: number;
      /** Whether this call put it on the chain. */
      readonly isOwn: boolean;
    }
  /** USDC or the contract refused; nothing was sent. */
  | { readonly type: "refused"; readonly why: RevertReason }
  | { readonly type: "released" }
  | { readonly type: "refunded" };

const ATTEMPTS = 6;
const MINED_WITHIN_MS = 60_000;
/**
 * The gas limit of a hold: an account uses up to 178,000, a contract wallet that checks its signature slightly more.
 */
export const HOLD_GAS = 250_000n;
/** The gas limit of a hold that also deploys its payer's wallet (ERC-6492). */
const DEPLOYING_HOLD_GAS = 1_000_000n;
/** The errors of contracts for a payment that someone else has just held. */
const HELD_MEANWHILE = new Set(["WrongStatus", "PaymentAlreadyCollected"]);

/**
 * Holds a payment on the chain exactly once, even with concurrent attempts elsewhere: a hold is sent only while the
 * chain shows none, and one made by someone else counts too.
 * @throws the last error of the node or the sender, if it remains unknown whether the payment is held
 */
export async function hold(
  client: Client,
  send: SendHold,
  { info, signature, escrow }: Omit<HoldRequest, "gas">,
): Promise<HoldOutcome> {
  const request = { info, signature, escrow, gas: isWrapped(signature) ? DEPLOYING_HOLD_GAS : HOLD_GAS };
  const id = paymentId(placeOf(escrow), info);
  let last: unknown = new Error(`Payment ${id} was not held after ${ATTEMPTS} attempts.`);
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const state = await readPayment(client, escrow.address, id);
    if (state.status !== "none") return existing(client, { id, escrow: escrow.address }, state);
    const refused = tooShort(info, Date.now()) ?? (await simulate(client, request));
    if (refused !== null && !HELD_MEANWHILE.has(refused.name)) return { type: "refused", why: refused };
    if (refused === null) {
      try {
        const held = await mined(client, await send(request), { id, escrow: escrow.address });
        if (held !== null) return held;
      } catch (error) {
        if (isOutOfGasMoney(error)) throw error;
        last = error;
      }
    }
    // Another process was faster, or used this account's nonce; its effect will soon be visible on the chain.
    await new Promise((resolve) => setTimeout(resolve, 100 * 2 ** attempt * (1 + Math.random())));
  }
  throw last;
}

async function existing(
  client: Client,
  held: HoldPlace,
  { status, refundableFrom }: PaymentState,
): Promise<HoldOutcome> {
  if (status === "released" || status === "refunded") return { type: status };
  const found = await findHold(client, held);
  if (found === null) throw new Error(`Payment ${held.id} is held, but the node does not return its event.`);
  return { type: "held", transaction: found.transaction, refundableFrom, isOwn: false };
}

/** A hold that is mined too late reverts, at the merchant's expense. */
function tooShort({ preApprovalExpiry }: PaymentInfo, nowMs: number): RevertReason | null {
  if (preApprovalExpiry * 1000 >= nowMs + LEAST_SECONDS_VALID * 1000) return null;
  return {
    name: "AfterPreApprovalExpiry",
    text: `its preApprovalExpiry is ${preApprovalExpiry}, expected at least ${Math.ceil(nowMs / 1000) + LEAST_SECONDS_VALID}`,
  };
}

async function simulate(client: Client, request: HoldRequest) {
  try {
    await simulateContract(client, authorizeCall(request));
    return null;
  } catch (error) {
    const reason = revertReason(error);
    if (reason === null) throw error;
    return reason;
  }
}

/**
 * Returns the hold according to its own receipt, because another node may lag; null if the transaction reverted or was
 * replaced.
 */
async function mined(client: Client, hash: Hex, { id, escrow }: HoldPlace): Promise<HoldOutcome | null> {
  const options = { hash, timeout: MINED_WITHIN_MS, pollingInterval: 250 };
  const receipt = await waitForTransactionReceipt(client, options).catch(async (error: unknown) => {
    const late = await getTransactionReceipt(client, { hash }).catch(() => null);
    if (late === null) throw error;
    return late;
  });
  // A wallet deployed with the hold may emit any events.
  const own = receipt.logs.filter(({ address }) => isAddressEqual(address, escrow));
  const held = parseEventLogs({ abi: escrowAbi, eventName: "Held", logs: own }).find(({ args }) => args.id === id);
  if (held === undefined) return null;
  const { refundableFrom } = held.args;
  return { type: "held", transaction: receipt.transactionHash, refundableFrom, isOwn: true };
}

const isOutOfGasMoney = (error: unknown): boolean =>
  error instanceof BaseError && error.walk((cause) => cause instanceof InsufficientFundsError) !== null;

const authorizeCall = ({ info, signature, escrow, gas }: HoldRequest) =>
  ({
    gas,
    address: escrow.address,
    abi: escrowAbi,
    functionName: "authorize",
    args: [info, info.maxAmount, escrow.collector, signature],
  }) as const;

const queues = new Map<string, Promise<unknown>>();

/** Runs one sender at a time per account, so that two transactions here never use the same nonce. */
export function inTurn<T>(key: string, send: () => Promise<T>): Promise<T> {
  const sent = (queues.get(key) ?? Promise.resolve()).then(send, send);
  queues.set(key, sent);
  return sent;
}

/** Returns a sender that holds from the merchant's own account, which pays the gas. */
export const sendFrom =
  (client: Client, account: LocalAccount): SendHold =>
  (request) =>
    inTurn(`${request.escrow.chainId} ${account.address}`, () =>
      writeContract(client, { ...authorizeCall(request), account, chain: null }),
    );
