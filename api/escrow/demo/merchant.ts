import { createAccount, derivedKey } from "../../platform/chain/accounts.ts";
import type { Hex } from "../../platform/wallet.ts";

/** Creates the wallet of the escrow demo's merchant, derived from the same seed. */
export function createDemoMerchant(seed: Uint8Array) {
  const { address, sign } = createAccount(derivedKey(seed, "demo-merchant"));
  return { address, sign: async (digest: Hex) => sign(digest) };
}
