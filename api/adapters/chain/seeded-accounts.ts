import { createHmac } from "node:crypto";
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import type { Decoys } from "../../certification/behaviour/session-store.ts";
import type { DecoySigner } from "../../certification/decoys/decoy-store.ts";
import { NETWORKS } from "../../kernel/networks.ts";
import type { Address, Hex } from "../../kernel/wallet.ts";
import { authorizationTypedData } from "../../payments/exact/authorization.ts";

/** The wallet of the escrow demo's merchant, derived from the same seed. */
export function createDemoMerchant(seed: Uint8Array) {
  const account = privateKeyToAccount(`0x${createHmac("sha256", seed).update("demo-merchant").digest("hex")}`);
  return { address: account.address.toLowerCase() as Address, sign: (digest: Hex) => account.sign({ hash: digest }) };
}

/**
 * Addresses that only the seed's owner can spend from: the private key is HMAC-SHA-256 of the decoy's name under the
 * seed.
 */
export function createDecoys(seed: Uint8Array): Decoys & DecoySigner {
  const accountOf = (name: string): PrivateKeyAccount =>
    privateKeyToAccount(`0x${createHmac("sha256", seed).update(`decoy|${name}`).digest("hex")}`);
  return {
    addressOf: (name) => accountOf(name).address.toLowerCase() as `0x${string}`,
    sign: (name, network, authorization) =>
      accountOf(name).signTypedData(authorizationTypedData(authorization, NETWORKS[network])),
  };
}
