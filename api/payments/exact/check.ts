import { formatUsd } from "../../kernel/money.ts";
import { NETWORKS } from "../../kernel/networks.ts";
import type { Terms } from "../../kernel/route.ts";
import { parseAddress } from "../../kernel/wallet.ts";
import type { ClaimedTerms, PresentedPayment } from "../header.ts";

/** An authorization must stay valid at least this long when it arrives, or it might expire while it settles. */
export const WINDOW_MARGIN_SECONDS = 20;

const iso = (seconds: bigint): string =>
  seconds < 253_402_300_800n ? new Date(Number(seconds) * 1000).toISOString() : `unix time ${seconds}`;

/** Whether an authorization can still be submitted; `nowSeconds` is the later of the clock and the chain's head. */
export const windowOpen = (validBefore: bigint, nowSeconds: bigint): boolean =>
  validBefore - nowSeconds >= BigInt(WINDOW_MARGIN_SECONDS);

/** Unix seconds: the later of our clock and the chain's head, and the head's own time. */
export interface ChainClock {
  readonly now: bigint;
  readonly head: bigint;
}

/** What is wrong with the signed terms of a payment, as one sentence for its 402; null when nothing is. */
export function termsError(payment: PresentedPayment, terms: Terms, { now, head }: ChainClock): string | null {
  const { authorization: signed, claimed } = payment;
  const contradiction = claimError(claimed, payment, terms);
  if (contradiction !== null) return contradiction;
  if (signed.to !== terms.payTo) return `The authorization pays ${signed.to}; it must pay ${terms.payTo}.`;
  if (signed.from === terms.payTo) return "The payer is the receiving address itself; pay from another wallet.";
  if (signed.value !== terms.value) {
    const { money } = NETWORKS[terms.network];
    return `The authorization is for ${signed.value} atomic units (${formatUsd(signed.value)} ${money}); the price is exactly ${terms.value} (${formatUsd(terms.value)} ${money}).`;
  }
  // The token compares with a block's time, and a transfer that it refuses once is refused for good.
  if (signed.validAfter >= head)
    return `The authorization is not valid before ${iso(signed.validAfter)}; the chain is at ${iso(head)}.`;
  if (signed.validBefore <= now) return `The authorization expired at ${iso(signed.validBefore)}; it is ${iso(now)}.`;
  if (!windowOpen(signed.validBefore, now)) {
    return `The authorization expires at ${iso(signed.validBefore)}; it must stay valid for at least ${WINDOW_MARGIN_SECONDS} seconds.`;
  }
  return null;
}

/** Fields that a client leaves out are not held against it; those that it states must be what it signed. */
function claimError(claimed: ClaimedTerms, { version, authorization }: PresentedPayment, terms: Terms): string | null {
  const { id, key, usdc } = NETWORKS[terms.network];
  const network = version === "v1" ? key : id;
  if (claimed.scheme !== undefined && claimed.scheme !== "exact")
    return `The payment claims the scheme ${claimed.scheme}; this route takes exact.`;
  if (claimed.network !== undefined && claimed.network !== network)
    return `The payment claims the network ${claimed.network}; this route takes ${network}.`;
  if (claimed.asset !== undefined && parseAddress(claimed.asset) !== usdc.address) {
    return `The payment claims the asset ${claimed.asset}; this route takes USDC at ${usdc.address}.`;
  }
  if (claimed.amount !== undefined && claimed.amount !== authorization.value.toString()) {
    return `The payment claims ${claimed.amount} atomic units, but ${authorization.value} were signed.`;
  }
  if (claimed.payTo !== undefined && parseAddress(claimed.payTo) !== authorization.to) {
    return `The payment claims to pay ${claimed.payTo}, but ${authorization.to} was signed.`;
  }
  return null;
}
