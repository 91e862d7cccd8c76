import { createAccount, derivedKey } from "../../platform/chain/accounts.ts";
import { authorizationTypedData } from "../../platform/chain/authorization.ts";
import { NETWORKS } from "../../platform/networks.ts";
import type { Decoys } from "../sessions/store.ts";
import type { DecoySigner } from "./store.ts";

/**
 * Creates addresses that only the owner of the seed can spend from: the private key is the HMAC-SHA-256 of the decoy's
 * name under the seed.
 */
export function createDecoys(seed: Uint8Array): Decoys & DecoySigner {
  const decoy = (name: string) => createAccount(derivedKey(seed, `decoy|${name}`));
  return {
    addressOf: (name) => decoy(name).address,
    sign: (name, network, authorization) =>
      decoy(name).signTypedData(authorizationTypedData(authorization, NETWORKS[network])),
  };
}
