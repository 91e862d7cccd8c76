import type { Address, Client, Hex } from "viem";
import { getBlock } from "viem/actions";
import { CONTEST_ROOM_SECONDS, type ContestTerms } from "./contest-terms.ts";
import { type PaymentState, type PaymentStatus, readPayment } from "./payment-status.ts";
import { REFUNDABLE_AFTER_SECONDS } from "./terms.ts";

/** The time for a decided release to be mined. With less, the buyer could get both goods and refund. */
export const LEAST_SECONDS_TO_RELEASE = 60;
/** The time for the arbiter to decide as well. */
const LEAST_SECONDS_TO_DECIDE = 5 * 60;
/** The default part of a hold's 30 minutes that must be left when the handler starts. */
const DEFAULT_LEAST_SECONDS_LEFT = 20 * 60;

/**
 * The minimum time that a delivery needs before minute 30 in addition to its window; by default the handler gets 2
 * minutes more.
 */
const LEAST_BESIDE_WINDOW = CONTEST_ROOM_SECONDS + LEAST_SECONDS_TO_RELEASE;
const DEFAULT_BESIDE_WINDOW = LEAST_SECONDS_TO_DECIDE;

/** Returns the part of a hold that must be left before an undecided response may leave. */
export const leastSecondsToDecide = (contest: ContestTerms | undefined): number =>
  LEAST_SECONDS_TO_DECIDE + (contest === undefined ? 0 : contest.seconds + CONTEST_ROOM_SECONDS);

/**
 * Parses the option `leastSecondsLeft`; its default is 20 minutes, or the window plus 5 minutes if that is more.
 * @throws TypeError if it is not a whole number from 60 (with a window: 180 more than it) to 1800
 */
export function parseLeastSecondsLeft(given: number | undefined, contest?: ContestTerms): number {
  const window = contest?.seconds ?? 0;
  if (given === undefined) return Math.max(DEFAULT_LEAST_SECONDS_LEFT, window + DEFAULT_BESIDE_WINDOW);
  const least = contest === undefined ? LEAST_SECONDS_TO_RELEASE : window + LEAST_BESIDE_WINDOW;
  if (Number.isInteger(given) && given >= least && given <= REFUNDABLE_AFTER_SECONDS) return given;
  throw new TypeError(
    `leastSecondsLeft is ${given}, expected a whole number from ${least} to ` +
      `${REFUNDABLE_AFTER_SECONDS}: the seconds of a hold that must be left when the handler starts.`,
  );
}

/** A payment's current status, and the seconds until anyone may refund it; negative once it is refundable. */
export interface TimeLeft {
  readonly status: PaymentStatus;
  readonly secondsLeft: number;
}

/** Reads a payment from the chain. The later of the chain's clock and this machine's counts. */
export async function readTimeLeft(client: Client, escrow: Address, id: Hex): Promise<TimeLeft> {
  const [state, now] = await Promise.all([readPayment(client, escrow, id), latestTime(client)]);
  return { status: state.status, secondsLeft: secondsLeft(state, now) };
}

/** Returns the time of the chain's head or of this machine, whichever is later, in unix seconds. */
export async function latestTime(client: Client): Promise<number> {
  const { timestamp } = await getBlock(client, { blockTag: "latest" });
  return Math.max(Number(timestamp), Date.now() / 1000);
}

export const secondsLeft = ({ refundableFrom }: Pick<PaymentState, "refundableFrom">, now: number): number =>
  refundableFrom - now;
