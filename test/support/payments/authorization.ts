import { authorizationTypes } from "@x402/evm";
import { type Address, type Hex, type LocalAccount, maxUint256, toHex } from "viem";
import type { Authorization } from "../../../api/platform/chain/view.ts";
import type { NetworkFacts } from "../../../api/platform/networks.ts";

/** EIP-3009. */
const TYPES = {
  ...authorizationTypes,
  ReceiveWithAuthorization: authorizationTypes.TransferWithAuthorization,
  CancelAuthorization: [
    { name: "authorizer", type: "address" },
    { name: "nonce", type: "bytes32" },
  ],
} as const;

export const randomNonce = (): Hex => toHex(crypto.getRandomValues(new Uint8Array(32)));

/** An authorization with a fresh nonce and no expiry, unless `fields` say otherwise. */
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

type Sign = (signer: LocalAccount, network: NetworkFacts, message: Authorization) => Promise<Hex>;
const signAs =
  (primaryType: "TransferWithAuthorization" | "ReceiveWithAuthorization"): Sign =>
  (signer, network, message) =>
    signer.signTypedData({ domain: usdcDomain(network), types: TYPES, primaryType, message });

export const signAuthorization = signAs("TransferWithAuthorization");
/** Only the payee can submit it. */
export const signReceiveAuthorization = signAs("ReceiveWithAuthorization");

export const signCancellation = (
  signer: LocalAccount,
  network: NetworkFacts,
  message: { readonly authorizer: Address; readonly nonce: Hex },
): Promise<Hex> =>
  signer.signTypedData({ domain: usdcDomain(network), types: TYPES, primaryType: "CancelAuthorization", message });
