import { createHash } from "node:crypto";
import { accountForm, hasLowS, unwrapped } from "../../packages/escrow/src/signature-forms.ts";
import { signerOf } from "../platform/chain/accounts.ts";
import { WINDOW_MARGIN_SECONDS } from "../platform/chain/authorization.ts";
import type { PayerSignature } from "../platform/chain/view.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import type { SchemeRules } from "./scheme.ts";

/**
 * Returns an account's signature over the digest in the only form that Circle's ECRecover accepts: 65 bytes, v 27 or
 * 28, s in the lower half of the order. Other encodings by wallets are the same signature. The altered copy with the
 * higher s is refused, as in USDC. Null if the payer's key did not make it.
 */
export function accountSignature(payer: Address, digest: Hex, signature: Hex): Hex | null {
  const plain = unwrapped(signature);
  const form = plain === null ? null : accountForm(plain);
  if (form === null || !hasLowS(form)) return null;
  return signerOf(digest, form) === payer ? form : null;
}

/** Whether an account without code signed the digest. */
export const isAccountSignature = (payer: Address, digest: Hex, signature: Hex): boolean =>
  accountSignature(payer, digest, signature) !== null;

/**
 * Returns the signature to settle with, whatever its original form: an account's canonical form, or the form that a
 * deployed wallet checks, unless the scheme deploys that wallet itself. It is not verified here.
 */
export function settledWith(
  { payer, digest, signature }: PayerSignature,
  { deploys }: Pick<SchemeRules, "deploys">,
): Hex {
  if (accountForm(signature) === signature) return signature;
  const own = accountSignature(payer, digest, signature);
  if (own !== null || deploys?.(signature) === true) return own ?? signature;
  return unwrapped(signature) ?? signature;
}

/** Explains why a signature is refused: which account signed instead, if any, and what to sign. */
export function notSigned({ payer, digest, signature }: PayerSignature, network: Network): string {
  const { chainId, usdc } = NETWORKS[network];
  const form = accountForm(unwrapped(signature) ?? signature);
  const signer = form === null ? null : signerOf(digest, form);
  const recovered = signer === null ? "no account can be recovered from it" : `${signer} was recovered from it`;
  const domain = `name "${usdc.name}", version "${usdc.version}", chainId ${chainId}, verifyingContract ${usdc.address}`;
  return `The signature is not the payer's: ${recovered}, and the payer is ${payer}. Sign the same fields as the payer, under the EIP-712 domain ${domain}.`;
}

/** Explains why the signature of a wallet without code is refused. */
export const undeployed = (wallet: Address, network: Network): string =>
  `The wallet ${wallet} is not deployed on ${NETWORKS[network].key}, so it has no code there that could check its signature (ERC-1271). Deploy the wallet first, then sign again.`;

export const signatureSha256 = (signature: Hex): string =>
  createHash("sha256")
    .update(Buffer.from(signature.slice(2), "hex"))
    .digest("hex");

/** The maximum remaining validity of an authorization on arrival, so that a stored signature is not useful for long. */
const MAX_WINDOW_HOURS = 24;
const MAX_WINDOW_SECONDS = BigInt(MAX_WINDOW_HOURS * 3600);

/** Unix seconds: our clock, and the chain's head. */
export interface Clocks {
  readonly now: bigint;
  readonly head: bigint;
}

export const unixSeconds = (at: Date): bigint => BigInt(Math.floor(at.getTime() / 1000));

const later = (one: bigint, other: bigint): bigint => (one > other ? one : other);

/** Returns the later of our clock and the chain's head, in unix seconds. */
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

/** Explains in one sentence for the 402 why an authorization is valid for too long; null if it is not. */
export function tooLong({ validBefore }: Pick<SignedWindow, "validBefore">, now: bigint): string | null {
  const latest = now + MAX_WINDOW_SECONDS;
  return validBefore > latest
    ? `The authorization is valid until ${iso(validBefore)}; sign one that is valid for at most ${MAX_WINDOW_HOURS} hours, until ${iso(latest)}.`
    : null;
}

/** Explains in one sentence for the 402 why an authorization can no longer be submitted; null if it can. */
export function closed({ validBefore }: Pick<SignedWindow, "validBefore">, now: bigint): string | null {
  if (validBefore <= now) return `The authorization expired at ${iso(validBefore)}; it is now ${iso(now)}.`;
  if (!windowOpen(validBefore, now)) {
    return `The authorization expires at ${iso(validBefore)}; it must stay valid for at least ${WINDOW_MARGIN_SECONDS} seconds.`;
  }
  return null;
}

/** Why an authorization cannot be submitted now. `behind`: its window has begun by our clock, but the chain lags. */
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
