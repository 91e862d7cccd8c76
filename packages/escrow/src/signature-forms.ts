import { type Hex, isErc6492Signature, parseErc6492Signature } from "viem";

/** Whether a signature comes with a preparing call, which deploys its wallet (ERC-6492). */
export const isWrapped = (signature: Hex): boolean => isErc6492Signature(signature);

/**
 * The signature that a deployed wallet checks (ERC-1271), without its ERC-6492 wrapping if it has one. Null if that
 * cannot be decoded, or wraps another wrapping: a contract would decode it, and make the call that the payer names.
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
 * A signature in the one form that USDC takes from an account: r, s, and a v of 27 or 28. Wallets also write v as 0 or 1,
 * or into the highest bit of s (ERC-2098). Null if it has none of these forms. Whose signature it is remains to be seen: a
 * contract may have a form of its own that looks like one of them.
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

/** Whether only a wallet's own code could have such a signature: it is wrapped, or longer than an account's. */
export const needsCode = (signature: Hex): boolean => isWrapped(signature) || signature.length > 132;
