import { authorizationTypes } from "@x402/evm";
import {
  type Address,
  concat,
  encodeFunctionData,
  encodePacked,
  type Hex,
  hexToBigInt,
  type LocalAccount,
  maxUint256,
  parseSignature,
  toHex,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import type { Authorization } from "../../../api/platform/chain/view.ts";
import { NETWORKS, type NetworkFacts } from "../../../api/platform/networks.ts";
import { settlementBatchAbi } from "../../../contracts/settlement-batch.ts";
import type { TestChain } from "../chain/chain.ts";
import { PAY_TO } from "../service/environment.ts";
import { PRICES } from "./prices.ts";

export const BASE = NETWORKS["eip155:8453"];

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

export interface Signed {
  readonly authorization: Authorization;
  readonly signature: Hex;
}

export const unixNow = (): bigint => BigInt(Math.floor(Date.now() / 1000));

/** A new account with 10 USDC, or with this amount. */
export async function newPayer(chain: TestChain, atomic = 10_000_000n): Promise<LocalAccount> {
  const account = privateKeyToAccount(generatePrivateKey());
  if (atomic > 0n) await chain.fund(account.address, atomic);
  return account;
}

/**
 * Signs a payment of the basic test's price to the service that is valid for two minutes. Any field can be overridden.
 */
export async function signPayment(
  account: LocalAccount,
  fields: Partial<Authorization> = {},
  network: NetworkFacts = BASE,
): Promise<Signed> {
  const authorization: Authorization = {
    from: account.address,
    to: PAY_TO,
    value: PRICES.basic,
    validAfter: 0n,
    validBefore: unixNow() + 120n,
    nonce: randomNonce(),
    ...fields,
  };
  const signature = await signAuthorization(account, network, authorization);
  witnessed.signatures.push(signature);
  return { authorization, signature };
}

/** The account's other valid signature over the same digest, which Circle's contract rejects. */
export function highS(signature: Hex): Hex {
  const s = ORDER - BigInt(`0x${signature.slice(66, 130)}`);
  return `${signature.slice(0, 66)}${s.toString(16).padStart(64, "0")}${signature.endsWith("1b") ? "1c" : "1b"}` as Hex;
}

/** The signature with one of its 65 bytes flipped. */
export const altered = (signature: Hex, byte = 40): Hex => {
  const at = 2 + byte * 2;
  const flipped = (Number.parseInt(signature.slice(at, at + 2), 16) ^ 1).toString(16).padStart(2, "0");
  return `${signature.slice(0, at)}${flipped}${signature.slice(at + 2)}` as Hex;
};

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

/** An authorization with a fresh nonce and no expiry. `fields` override its members. */
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
/** Only the payee can submit this kind. */
export const signReceiveAuthorization = signAs("ReceiveWithAuthorization");

export const signCancellation = (
  signer: LocalAccount,
  network: NetworkFacts,
  message: { readonly authorizer: Address; readonly nonce: Hex },
): Promise<Hex> =>
  signer.signTypedData({ domain: usdcDomain(network), types: TYPES, primaryType: "CancelAuthorization", message });

/**
 * Everything that the current test file signed and received, to prove that no signature leaks. The files of one worker
 * share it one after another.
 */
export const witnessed: { readonly signatures: Hex[]; readonly answers: string[] } = { signatures: [], answers: [] };

export function forgetWitnessed(): void {
  witnessed.signatures.length = 0;
  witnessed.answers.length = 0;
}

/** One item of a settlement batch, from the layout that `ISettlementBatch` publishes. */
function itemOf({ authorization, signature }: Signed): Hex {
  const { from, value, validAfter, validBefore, nonce } = authorization;
  const { r, s, yParity } = parseSignature(signature);
  const vs = hexToBigInt(s) | (BigInt(yParity) << 255n);
  return encodePacked(
    ["address", "uint64", "uint40", "uint40", "bytes32", "bytes32", "uint256"],
    [from, value, Number(validAfter), Number(validBefore), nonce, r, vs],
  );
}

/** The calldata that settles the authorizations, all to one payee, with at most `gasCap` gas for each. */
export const settleCall = (
  payments: readonly Signed[],
  { token, to, gasCap }: { readonly token: Address; readonly to: Address; readonly gasCap: bigint },
): Hex =>
  encodeFunctionData({
    abi: settlementBatchAbi,
    functionName: "settle",
    args: [token, to, gasCap, concat(payments.map(itemOf))],
  });
