import { type Hex, isErc6492Signature, parseErc6492Signature } from "viem";

/** Returns whether a signature includes a preparing call that deploys its wallet (ERC-6492). */
export const isWrapped = (signature: Hex): boolean => isErc6492Signature(signature);

/**
 * Returns the signature that a deployed wallet checks (ERC-1271), without its ERC-6492 wrapping if it has one. Null if
 * that cannot be decoded, or is wrapped twice: a contract would decode it, and make the call that the payer names.
 */
export function unwrapped(signature: Hex): Hex | null {
  if (!isWrapped(signature)) return signature;
  try {
    const { signature: inner } = parseErc6492Signature(signature);
    return isWrapped(inner) ? null : (inner.toLowerCase() as Hex);
  } catch {
    return null;
  }
}

/**
 * Returns a signature in the one form that USDC accepts from an account: r, s, and a v of 27 or 28. Wallets also write
 * v as 0 or 1, or into the highest bit of s (ERC-2098). Null if it has none of these forms. The signer is not checked:
 * a contract's own form may look like one of them.
 */
export function accountForm(signature: Hex): Hex | null {
  const [, r, s = "", v] = /^0x([0-9a-f]{64})([0-9a-f]{64})([0-9a-f]{2})?$/i.exec(signature) ?? [];
  if (r === undefined) return null;
  if (v === undefined) {
    const parityAndS = BigInt(`0x${s}`);
    const parity = parityAndS >> 255n;
    return `0x${r}${(parityAndS - (parity << 255n)).toString(16).padStart(64, "0")}${parity === 0n ? "1b" : "1c"}`;
  }
  const parity = ["00", "01", "1b", "1c"].indexOf(v.toLowerCase());
  return parity === -1 ? null : `0x${r}${s}${parity % 2 === 0 ? "1b" : "1c"}`;
}

const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;

/** Returns whether s is in the lower half of the order. USDC refuses the altered copy of a signature with the higher s. */
export const hasLowS = (signature: Hex): boolean => BigInt(`0x${signature.slice(66, 130)}`) <= HALF_ORDER;

/** Returns whether only a wallet contract can have such a signature, which is wrapped, or longer than an account's. */
export const needsCode = (signature: Hex): boolean => isWrapped(signature) || signature.length > 132;
