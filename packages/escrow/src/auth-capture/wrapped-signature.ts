import { type Address, type Hex, isAddressEqual, parseErc6492Signature } from "viem";
import { isWrapped } from "../signature-forms.ts";
import { refusal } from "./refusal.ts";

/**
 * Returns the reason why a signature may not be sent to the chain, beginning with the scheme's code; null if it may.
 * The collector makes the preparing call to whatever contract the payer names, on the sender's gas, so only known
 * factories are accepted.
 */
export function wrongFactory(signature: Hex, allowed: readonly Address[]): string | null {
  if (!isWrapped(signature)) return null;
  const factory = factoryOf(signature);
  if (factory === null) return refusal("signature", "the ERC-6492 signature cannot be decoded.");
  if (allowed.some((one) => isAddressEqual(one, factory))) return null;
  const accepted = allowed.length === 0 ? "none; deploy the wallet first" : allowed.join(", ");
  return refusal("erc6492_factory_not_allowed", `the wallet's factory is ${factory}; accepted: ${accepted}.`);
}

function factoryOf(signature: Hex): Address | null {
  try {
    return parseErc6492Signature(signature).address ?? null;
  } catch {
    return null;
  }
}
