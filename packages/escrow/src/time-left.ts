import type { Address, Client, Hex } from "viem";
import { getBlock } from "viem/actions";
import { type PaymentState, type PaymentStatus, readPayment } from "./payment-status.ts";
import { REFUNDABLE_AFTER_SECONDS } from "./terms.ts";

/** The time that a decided release gets to be mined. With less, the buyer could get both goods and refund. */
export const LEAST_SECONDS_TO_RELEASE = 60;
/** The time that the arbiter gets to decide as well. */
export const LEAST_SECONDS_TO_DECIDE = 5 * 60;
/** By default, how much of a hold's 30 minutes is left when the handler starts. */
const DEFAULT_LEAST_SECONDS_LEFT = 20 * 60;

/**
 * The option `leastSecondsLeft`, or its default of 20 minutes.
 * @throws TypeError if it is not a whole number from 60 to 1800
 */
export function parseLeastSecondsLeft(given = DEFAULT_LEAST_SECONDS_LEFT): number {
  if (Number.isInteger(given) && given >= LEAST_SECONDS_TO_RELEASE && given <= REFUNDABLE_AFTER_SECONDS) return given;
  throw new TypeError(
    `leastSecondsLeft is ${given}, expected a whole number from ${LEAST_SECONDS_TO_RELEASE} to ` +
      `${REFUNDABLE_AFTER_SECONDS}: the seconds of a hold that must be left when the handler starts.`,
  );
}

export interface HoldKey {
  readonly id: Hex;
  readonly escrow: Address;
}

/** What a payment is right now, and the seconds until anyone may refund it; negative if that time has come. */
export interface TimeLeft {
  readonly status: PaymentStatus;
  readonly secondsLeft: number;
}

/** Reads a payment from the chain. The chain's clock or this machine's counts, depending on which is ahead. */
export async function readTimeLeft(client: Client, { id, escrow }: HoldKey): Promise<TimeLeft> {
  const [state, now] = await Promise.all([readPayment(client, escrow, id), latestTime(client)]);
  return { status: state.status, secondsLeft: secondsLeft(state, now) };
}

/** The time of the chain's head or of this machine, whichever is later, in unix seconds. */
export async function latestTime(client: Client): Promise<number> {
  const { timestamp } = await getBlock(client, { blockTag: "latest" });
  return Math.max(Number(timestamp), Date.now() / 1000);
}

export const secondsLeft = ({ refundableFrom }: Pick<PaymentState, "refundableFrom">, now: number): number =>
  refundableFrom - now;
