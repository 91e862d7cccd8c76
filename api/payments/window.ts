/** How long an authorization must still be valid when it arrives; with less, it might expire while it settles. */
export const WINDOW_MARGIN_SECONDS = 20;

/** Unix seconds: the later of our clock and the chain's head, and the head's own time. */
export interface ChainClock {
  readonly now: bigint;
  readonly head: bigint;
}

/** The later of our clock and the chain's head, in unix seconds. */
export const laterOf = (now: Date, headTime: bigint): bigint => {
  const clock = BigInt(Math.floor(now.getTime() / 1000));
  return clock > headTime ? clock : headTime;
};

/** Whether an authorization can still be submitted; `nowSeconds` is the later of the clock and the chain's head. */
export const windowOpen = (validBefore: bigint, nowSeconds: bigint): boolean =>
  validBefore - nowSeconds >= BigInt(WINDOW_MARGIN_SECONDS);

const iso = (seconds: bigint): string =>
  seconds < 253_402_300_800n ? new Date(Number(seconds) * 1000).toISOString() : `unix time ${seconds}`;

interface SignedWindow {
  readonly validAfter: bigint;
  readonly validBefore: bigint;
}

/** Why an authorization cannot be submitted now, as one sentence for its 402; null if it can. */
export function windowError({ validAfter, validBefore }: SignedWindow, { now, head }: ChainClock): string | null {
  // The token compares with the block's time, and one refusal by the token is final for a payment.
  if (validAfter >= head)
    return `The authorization is not valid until ${iso(validAfter)}; the chain is at ${iso(head)}.`;
  if (validBefore <= now) return `The authorization expired at ${iso(validBefore)}; it is now ${iso(now)}.`;
  if (!windowOpen(validBefore, now)) {
    return `The authorization expires at ${iso(validBefore)}; it must stay valid for at least ${WINDOW_MARGIN_SECONDS} seconds.`;
  }
  return null;
}
