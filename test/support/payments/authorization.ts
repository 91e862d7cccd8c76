import { type Address, type Hex, type LocalAccount, maxUint256, toHex } from "viem";
import type { NetworkFacts } from "../../../api/kernel/networks.ts";
import type { Authorization } from "../../../api/payments/authorization.ts";

const TYPES = {
  TransferWithAuthorization: [
    { name: "from", type: "address" },
    { name: "to", type: "address" },
    { name: "value", type: "uint256" },
    { name: "validAfter", type: "uint256" },
    { name: "validBefore", type: "uint256" },
    { name: "nonce", type: "bytes32" },
  ],
  CancelAuthorization: [
    { name: "authorizer", type: "address" },
    { name: "nonce", type: "bytes32" },
  ],
} as const;

export const randomNonce = (): Hex => toHex(crypto.getRandomValues(new Uint8Array(32)));

/** An authorization with a fresh nonce that never expires, unless `fields` say otherwise. */
export const authorization = (
  fields: Pick<Authorization, "from" | "to" | "value"> & Partial<Authorization>,
): Authorization => ({ validAfter: 0n, validBefore: maxUint256, nonce: randomNonce(), ...fields });

/** The EIP-712 domain of Circle's USDC on the network. */
export const usdcDomain = ({ chainId, usdc: { address, name, version } }: NetworkFacts) => ({
  name,
  version,
  chainId,
  verifyingContract: address,
});

export const signAuthorization = (signer: LocalAccount, network: NetworkFacts, message: Authorization): Promise<Hex> =>
  signer.signTypedData({
    domain: usdcDomain(network),
    types: TYPES,
    primaryType: "TransferWithAuthorization",
    message,
  });

export const signCancellation = (
  signer: LocalAccount,
  network: NetworkFacts,
  message: { readonly authorizer: Address; readonly nonce: Hex },
): Promise<Hex> =>
  signer.signTypedData({ domain: usdcDomain(network), types: TYPES, primaryType: "CancelAuthorization", message });
