/** How long an authorization must still be valid when it arrives; with less, it might expire while it settles. */
export const WINDOW_MARGIN_SECONDS = 20;
/** How long an authorization may be valid when it arrives: a stored signature is not to be useful for long. */
const MAX_WINDOW_HOURS = 24;
const MAX_WINDOW_SECONDS = BigInt(MAX_WINDOW_HOURS * 3600);

/** Unix seconds: our clock, and the chain's head. */
export interface Clocks {
  readonly now: bigint;
  readonly head: bigint;
}

export const unixSeconds = (at: Date): bigint => BigInt(Math.floor(at.getTime() / 1000));

const later = (one: bigint, other: bigint): bigint => (one > other ? one : other);

/** The later of our clock and the chain's head, in unix seconds. */
export const laterOf = (now: Date, headTime: bigint): bigint => later(unixSeconds(now), headTime);

/** Whether an authorization can still be submitted; `nowSeconds` is the later of the clock and the chain's head. */
export const windowOpen = (validBefore: bigint, nowSeconds: bigint): boolean =>
  validBefore - nowSeconds >= BigInt(WINDOW_MARGIN_SECONDS);

const iso = (seconds: bigint): string =>
  seconds < 253_402_300_800n ? new Date(Number(seconds) * 1000).toISOString() : `unix time ${seconds}`;

interface SignedWindow {
  readonly validAfter: bigint;
  readonly validBefore: bigint;
}

/** Why an authorization is valid for too long, as one sentence for its 402; null if it is not. */
export function tooLong({ validBefore }: Pick<SignedWindow, "validBefore">, now: bigint): string | null {
  const latest = now + MAX_WINDOW_SECONDS;
  return validBefore > latest
    ? `The authorization is valid until ${iso(validBefore)}; sign one that is valid for at most ${MAX_WINDOW_HOURS} hours, until ${iso(latest)}.`
    : null;
}

/** Why an authorization can no longer be submitted, as one sentence for its 402; null if it can. */
export function closed({ validBefore }: Pick<SignedWindow, "validBefore">, now: bigint): string | null {
  if (validBefore <= now) return `The authorization expired at ${iso(validBefore)}; it is now ${iso(now)}.`;
  if (!windowOpen(validBefore, now)) {
    return `The authorization expires at ${iso(validBefore)}; it must stay valid for at least ${WINDOW_MARGIN_SECONDS} seconds.`;
  }
  return null;
}

/** Why an authorization cannot be submitted now. `behind`: its window has begun, but not on a chain that lags. */
export type WindowProblem = { readonly because: "early" | "behind" | "closed"; readonly error: string };

export function windowProblem({ validAfter, validBefore }: SignedWindow, { now, head }: Clocks): WindowProblem | null {
  // The token compares with the block's time, and one refusal by the token is final for a payment.
  if (validAfter >= head) {
    const error = `The authorization is not valid until ${iso(validAfter)}; the chain is at ${iso(head)}.`;
    return { because: validAfter < now ? "behind" : "early", error };
  }
  const error = closed({ validBefore }, later(now, head));
  return error === null ? null : { because: "closed", error };
}
