import { createHash } from "node:crypto";
import { recover } from "tiny-secp256k1";
import { keccak256 } from "viem";
import type { Address, Hex } from "../kernel/wallet.ts";

const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;

/**
 * Whether an account without code signed the digest. Accepts exactly what Circle's ECRecover accepts: 65 bytes, v 27 or
 * 28, s in the lower half of the order. An altered copy of a signature is therefore not a second valid one.
 */
export function isAccountSignature(payer: Address, digest: Hex, signature: Hex): boolean {
  if (signature.length !== 132 || !/1[bc]$/.test(signature)) return false;
  if (BigInt(`0x${signature.slice(66, 130)}`) > HALF_ORDER) return false;
  const bytes = Buffer.from(signature.slice(2), "hex");
  try {
    const publicKey = recover(
      Buffer.from(digest.slice(2), "hex"),
      bytes.subarray(0, 64),
      bytes[64] === 28 ? 1 : 0,
      false,
    );
    return publicKey !== null && addressOf(publicKey) === payer;
  } catch {
    // r or s is zero or not below the order.
    return false;
  }
}

/** The last 20 bytes of the Keccak-256 of an uncompressed public key without its first byte. */
const addressOf = (publicKey: Uint8Array): string => `0x${keccak256(publicKey.subarray(1)).slice(-40)}`;

export const signatureSha256 = (signature: Hex): string =>
  createHash("sha256")
    .update(Buffer.from(signature.slice(2), "hex"))
    .digest("hex");
