import { createHash } from "node:crypto";
import { accountForm, unwrapped } from "../../packages/escrow/src/signature-forms.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import { signerOf } from "../platform/chain/secp256k1.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import type { PayerSignature } from "./chain.ts";
import type { SchemeRules } from "./scheme.ts";

const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;

/**
 * The signature over the digest of an account without code, in the one form that Circle's ECRecover accepts: 65 bytes, v 27
 * or 28, s in the lower half of the order. Other forms that wallets write are the same signature; the altered copy with
 * the higher s is refused, like there. Null if the payer's key did not make it.
 */
export function accountSignature(payer: Address, digest: Hex, signature: Hex): Hex | null {
  const plain = unwrapped(signature);
  const form = plain === null ? null : accountForm(plain);
  if (form === null || BigInt(`0x${form.slice(66, 130)}`) > HALF_ORDER) return null;
  return signerOf(digest, form) === payer ? form : null;
}

/** Whether an account without code signed the digest. */
export const isAccountSignature = (payer: Address, digest: Hex, signature: Hex): boolean =>
  accountSignature(payer, digest, signature) !== null;

/**
 * What a payment is settled with, whatever form its signature came in: the one form of an account's own, or what a deployed
 * wallet checks, unless the scheme deploys that wallet itself. The signature may still be anybody's.
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

/** Why the signature of a wallet without code is refused. */
export const undeployed = (wallet: Address, network: Network): string =>
  `The wallet ${wallet} is not deployed on ${NETWORKS[network].key}, so it has no code there that could check its signature (ERC-1271). Deploy the wallet first, then sign again.`;

export const signatureSha256 = (signature: Hex): string =>
  createHash("sha256")
    .update(Buffer.from(signature.slice(2), "hex"))
    .digest("hex");
