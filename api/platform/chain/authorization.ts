import { AUTHORIZATION_MEMBERS } from "../../../packages/escrow/src/authorization.ts";
import { memoize } from "../memo.ts";
import type { NetworkFacts } from "../networks.ts";
import type { Hex } from "../wallet.ts";
import { addressWord, bytes32Word, domainHash, typedDigest, typeHash, uintWord } from "./typed-data.ts";
import type { Authorization } from "./view.ts";

/** Returns the typed data (EIP-712) that the payer signs, under the network's USDC domain. */
export const authorizationTypedData = (authorization: Authorization, { usdc, chainId }: NetworkFacts) => ({
  domain: { name: usdc.name, version: usdc.version, chainId, verifyingContract: usdc.address },
  types: { TransferWithAuthorization: AUTHORIZATION_MEMBERS },
  primaryType: "TransferWithAuthorization" as const,
  message: authorization,
});

/** The EIP-3009 types that move USDC: one that any account may submit, and one that only the payee may. */
export type AuthorizationType = "TransferWithAuthorization" | "ReceiveWithAuthorization";

const TYPE_HASHES: Readonly<Record<AuthorizationType, string>> = {
  TransferWithAuthorization: typeHash("TransferWithAuthorization", AUTHORIZATION_MEMBERS),
  ReceiveWithAuthorization: typeHash("ReceiveWithAuthorization", AUTHORIZATION_MEMBERS),
};
const domainHashes = memoize<string>(16);

/** Returns the EIP-712 digest of an authorization. The parts that a network's authorizations share are hashed once. */
export function authorizationDigest(
  { from, to, value, validAfter, validBefore, nonce }: Authorization,
  { id, chainId, usdc: { name, version, address } }: NetworkFacts,
  type: AuthorizationType = "TransferWithAuthorization",
): Hex {
  const domain = domainHashes(id, () => domainHash({ name, version, chainId, verifyingContract: address }));
  const numbers = [value, validAfter, validBefore].map((number) => uintWord(number));
  const words = [addressWord(from), addressWord(to), ...numbers, bytes32Word(nonce)];
  return typedDigest(domain, TYPE_HASHES[type] + words.join(""));
}

/** Returns the authorization as in x402 payloads, with integers as decimal strings. */
export const authorizationWire = (authorization: Authorization) => ({
  from: authorization.from,
  to: authorization.to,
  value: authorization.value.toString(),
  validAfter: authorization.validAfter.toString(),
  validBefore: authorization.validBefore.toString(),
  nonce: authorization.nonce,
});

/** The minimum remaining validity of an authorization on arrival. With less, it might expire while it settles. */
export const WINDOW_MARGIN_SECONDS = 20;
