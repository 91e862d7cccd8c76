import { createHash } from "node:crypto";
import { recoverAddress } from "viem";
import type { Address, Hex } from "../kernel/wallet.ts";

const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;

/**
 * Whether an account without code signed the digest. Accepts exactly what Circle's ECRecover accepts: 65 bytes, v 27 or 28,
 * s in the lower half of the order; an altered copy of a signature is not a second valid one.
 */
export async function isAccountSignature(payer: Address, digest: Hex, signature: Hex): Promise<boolean> {
  if (signature.length !== 132 || !/1[bc]$/.test(signature)) return false;
  if (BigInt(`0x${signature.slice(66, 130)}`) > HALF_ORDER) return false;
  try {
    return (await recoverAddress({ hash: digest, signature })).toLowerCase() === payer;
  } catch {
    return false;
  }
}

export const signatureSha256 = (signature: Hex): string =>
  createHash("sha256")
    .update(Buffer.from(signature.slice(2), "hex"))
    .digest("hex");
