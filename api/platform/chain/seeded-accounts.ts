import { createHmac } from "node:crypto";
import type { DecoySigner } from "../../certificates/decoys/store.ts";
import type { Decoys } from "../../certificates/sessions/store.ts";
import { authorizationTypedData } from "../../payments/schemes/authorization.ts";
import { NETWORKS } from "../networks.ts";
import type { Hex } from "../wallet.ts";
import { createAccount } from "./accounts.ts";

/** The wallet of the escrow demo's merchant, derived from the same seed. */
export function createDemoMerchant(seed: Uint8Array) {
  const { address, sign } = createAccount(derivedKey(seed, "demo-merchant"));
  return { address, sign: async (digest: Hex) => sign(digest) };
}

/**
 * Addresses that only the seed's owner can spend from: the private key is HMAC-SHA-256 of the decoy's name under the
 * seed.
 */
export function createDecoys(seed: Uint8Array): Decoys & DecoySigner {
  const decoy = (name: string) => createAccount(derivedKey(seed, `decoy|${name}`));
  return {
    addressOf: (name) => decoy(name).address,
    sign: (name, network, authorization) =>
      decoy(name).signTypedData(authorizationTypedData(authorization, NETWORKS[network])),
  };
}

const derivedKey = (seed: Uint8Array, name: string): Hex =>
  `0x${createHmac("sha256", seed).update(name).digest("hex")}`;
