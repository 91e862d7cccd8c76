import { hashTypedData } from "viem";
import type { NetworkFacts } from "../../kernel/networks.ts";
import type { Hex } from "../../kernel/wallet.ts";
import type { Authorization } from "../scheme.ts";

const TYPES = {
  TransferWithAuthorization: [
    { name: "from", type: "address" },
    { name: "to", type: "address" },
    { name: "value", type: "uint256" },
    { name: "validAfter", type: "uint256" },
    { name: "validBefore", type: "uint256" },
    { name: "nonce", type: "bytes32" },
  ],
} as const;

/** The typed data (EIP-712) the payer signs, under the network's USDC domain. */
export const authorizationTypedData = (authorization: Authorization, { usdc, chainId }: NetworkFacts) => ({
  domain: { name: usdc.name, version: usdc.version, chainId, verifyingContract: usdc.address },
  types: TYPES,
  primaryType: "TransferWithAuthorization" as const,
  message: authorization,
});

/** The EIP-712 digest of an authorization. */
export const authorizationDigest = (authorization: Authorization, facts: NetworkFacts): Hex =>
  hashTypedData(authorizationTypedData(authorization, facts));

/** The authorization as x402 payloads carry it, with integers as decimal strings. */
export const authorizationWire = (authorization: Authorization) => ({
  from: authorization.from,
  to: authorization.to,
  value: authorization.value.toString(),
  validAfter: authorization.validAfter.toString(),
  validBefore: authorization.validBefore.toString(),
  nonce: authorization.nonce,
});
