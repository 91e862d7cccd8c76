import { createHash } from "node:crypto";
import { signerOf } from "../kernel/secp256k1.ts";
import type { Address, Hex } from "../kernel/wallet.ts";

const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;

/**
 * Whether an account without code signed the digest. Accepts exactly what Circle's ECRecover accepts: 65 bytes, v 27 or
 * 28, s in the lower half of the order. An altered copy of a signature is therefore not a second valid one.
 */
export function isAccountSignature(payer: Address, digest: Hex, signature: Hex): boolean {
  if (signature.length !== 132 || !/1[bc]$/.test(signature)) return false;
  if (BigInt(`0x${signature.slice(66, 130)}`) > HALF_ORDER) return false;
  return signerOf(digest, signature) === payer;
}

export const signatureSha256 = (signature: Hex): string =>
  createHash("sha256")
    .update(Buffer.from(signature.slice(2), "hex"))
    .digest("hex");
