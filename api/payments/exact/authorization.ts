import { domainSeparator } from "viem";
import { keccak256 } from "../../kernel/keccak.ts";
import { NETWORKS, type NetworkFacts } from "../../kernel/networks.ts";
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

/** What a payer signs to have USDC moved: by anybody, or by the payee alone (EIP-3009). */
export type AuthorizationType = "TransferWithAuthorization" | "ReceiveWithAuthorization";

const MEMBERS = TYPES.TransferWithAuthorization.map(({ name, type }) => `${type} ${name}`).join(",");
const typeHash = (type: AuthorizationType): string => keccak256(Buffer.from(`${type}(${MEMBERS})`)).slice(2);
const TYPE_HASHES: Readonly<Record<AuthorizationType, string>> = {
  TransferWithAuthorization: typeHash("TransferWithAuthorization"),
  ReceiveWithAuthorization: typeHash("ReceiveWithAuthorization"),
};
const DOMAINS = new Map(
  Object.values(NETWORKS).map(({ id, chainId, usdc: { name, version, address } }) => [
    id,
    domainSeparator({ domain: { name, version, chainId, verifyingContract: address } }).slice(2),
  ]),
);

/** The EIP-712 digest of an authorization: what all of a network's share is hashed once. */
export function authorizationDigest(
  authorization: Authorization,
  { id }: NetworkFacts,
  type: AuthorizationType = "TransferWithAuthorization",
): Hex {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const words = [from.slice(2), to.slice(2), ...[value, validAfter, validBefore].map((n) => n.toString(16))];
  const struct = TYPE_HASHES[type] + words.map((word) => word.padStart(64, "0")).join("") + nonce.slice(2);
  return keccak256(`0x1901${DOMAINS.get(id)}${keccak256(`0x${struct}`).slice(2)}`);
}

/** The authorization as x402 payloads carry it, with integers as decimal strings. */
export const authorizationWire = (authorization: Authorization) => ({
  from: authorization.from,
  to: authorization.to,
  value: authorization.value.toString(),
  validAfter: authorization.validAfter.toString(),
  validBefore: authorization.validBefore.toString(),
  nonce: authorization.nonce,
});
