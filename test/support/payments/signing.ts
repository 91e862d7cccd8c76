import type { Hex, LocalAccount } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import type { Authorization } from "../../../api/platform/chain/view.ts";
import { NETWORKS, type NetworkFacts } from "../../../api/platform/networks.ts";
import type { TestChain } from "../chain/chain.ts";
import { witnessed } from "../openapi/witnessed.ts";
import { PAY_TO } from "../service/accounts.ts";
import { randomNonce, signAuthorization } from "./authorization.ts";

export const BASE = NETWORKS["eip155:8453"];

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

export interface Signed {
  readonly authorization: Authorization;
  readonly signature: Hex;
}

export const unixNow = (): bigint => BigInt(Math.floor(Date.now() / 1000));

/** A new account with 10 USDC, or the amount the test says. */
export async function newPayer(chain: TestChain, atomic = 10_000_000n): Promise<LocalAccount> {
  const account = privateKeyToAccount(generatePrivateKey());
  if (atomic > 0n) await chain.fund(account.address, atomic);
  return account;
}

/** Signs a payment of 0.25 USDC to the service, valid for two minutes; any field can be overridden. */
export async function signPayment(
  account: LocalAccount,
  fields: Partial<Authorization> = {},
  network: NetworkFacts = BASE,
): Promise<Signed> {
  const authorization: Authorization = {
    from: account.address,
    to: PAY_TO,
    value: 250_000n,
    validAfter: 0n,
    validBefore: unixNow() + 120n,
    nonce: randomNonce(),
    ...fields,
  };
  const signature = await signAuthorization(account, network, authorization);
  witnessed.signatures.push(signature);
  return { authorization, signature };
}

/** The same account's other signature over the same digest, which Circle's contract rejects. */
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
