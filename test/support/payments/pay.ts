import { decodePaymentRequiredHeader } from "@x402/core/http";
import type { PaymentRequired } from "@x402/core/types";
import { type Address, type Hex, type LocalAccount, parseAbi, parseEventLogs } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect } from "vitest";
import { NETWORKS, type NetworkFacts } from "../../../api/kernel/networks.ts";
import type { Authorization } from "../../../api/payments/authorization.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { USDC_ABI } from "../../../scripts/embedded/usdc.ts";
import type { TestChain } from "../chain/chain.ts";
import { witnessed } from "../openapi/witnessed.ts";
import type { TestService } from "../service/service.ts";
import { randomNonce, signAuthorization, signCancellation } from "./authorization.ts";

/** The receiving address of the services under test; nobody holds its key. */
export const PAY_TO = "0x00000000000000000000000000000000c0ffee01";

const BASE = NETWORKS["eip155:8453"];
const EVENTS = parseAbi([
  "event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)",
  "event Transfer(address indexed from, address indexed to, uint256 value)",
]);
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

export interface Signed {
  readonly authorization: Authorization;
  readonly signature: Hex;
}

/** What came back, its body as text and, where it is JSON, parsed. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Record<string, unknown>;
}

export const unixNow = (): bigint => BigInt(Math.floor(Date.now() / 1000));

/** A new account with 10 USDC, or with as much as the test says. */
export async function newPayer(chain: TestChain, atomic = 10_000_000n): Promise<LocalAccount> {
  const account = privateKeyToAccount(generatePrivateKey());
  if (atomic > 0n) await chain.fund(account.address, atomic);
  return account;
}

/** Signs a payment of 0.25 USDC to the service that is valid for two minutes; any field can be another. */
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

/** The other signature of the same account over the same digest, which Circle's contract does not take. */
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

export const encode = (payload: unknown): string => Buffer.from(JSON.stringify(payload)).toString("base64");

const wire = ({ authorization: { from, to, value, validAfter, validBefore, nonce }, signature }: Signed) => ({
  signature,
  authorization: {
    from,
    to,
    value: String(value),
    validAfter: String(validAfter),
    validBefore: String(validBefore),
    nonce,
  },
});

export const acceptedOf = ({ authorization }: Signed) => ({
  scheme: "exact",
  network: BASE.id as string,
  amount: String(authorization.value),
  asset: BASE.usdc.address as string,
  payTo: authorization.to as string,
  maxTimeoutSeconds: 120,
  extra: { name: BASE.usdc.name, version: "2" },
});

/** The headers of a version 2 payment. `accepted` overrides what the client claims, `id` is its payment identifier. */
export function v2(
  signed: Signed,
  { accepted = {}, id }: { accepted?: Partial<ReturnType<typeof acceptedOf>>; id?: unknown } = {},
): Record<string, string> {
  const extensions = id === undefined ? {} : { "payment-identifier": { info: { required: false, id } } };
  return {
    "PAYMENT-SIGNATURE": encode({
      x402Version: 2,
      accepted: { ...acceptedOf(signed), ...accepted },
      payload: wire(signed),
      extensions,
    }),
  };
}

/** The headers of a version 1 payment. */
export const v1 = (signed: Signed, network = "base"): Record<string, string> => ({
  "X-PAYMENT": encode({ x402Version: 1, scheme: "exact", network, payload: wire(signed) }),
});

export async function send(url: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(url, { redirect: "error", ...init });
  const text = await response.text();
  witnessed.answers.push(text, JSON.stringify([...response.headers]));
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: text.startsWith("{") ? (JSON.parse(text) as Answer["body"]) : {},
  };
}

export const post = (url: string, headers: Record<string, string> = {}, body: string | null = null): Promise<Answer> =>
  send(url, { method: "POST", headers, body });

/** The version 2 challenge of a 402. */
export const challengeOf = (answer: Answer): PaymentRequired =>
  decodePaymentRequiredHeader(answer.headers.get("payment-required") ?? "");

/** Sends a signed authorization to USDC as any stranger who got hold of it may, and waits until it is mined. */
export async function broadcast(chain: TestChain, { authorization, signature }: Signed): Promise<Hex> {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const hash = await chain.client.writeContract({
    account: devAccount(0),
    address: chain.network.usdc.address,
    abi: USDC_ABI,
    functionName: "transferWithAuthorization",
    args: [from, to, value, validAfter, validBefore, nonce, signature],
  });
  const { status } = await chain.client.waitForTransactionReceipt({ hash });
  expect(status).toBe("success");
  return hash;
}

/** Cancels an authorization on the chain, as only its payer can. */
export async function cancel(chain: TestChain, payer: LocalAccount, { authorization }: Signed): Promise<void> {
  const { nonce } = authorization;
  const signature = await signCancellation(payer, chain.network, { authorizer: payer.address, nonce });
  const hash = await chain.client.writeContract({
    account: devAccount(0),
    address: chain.network.usdc.address,
    abi: USDC_ABI,
    functionName: "cancelAuthorization",
    args: [payer.address, nonce, signature],
  });
  await chain.client.waitForTransactionReceipt({ hash });
}

/** What the chain shows this account to have paid to the service by authorization: never what our own database says. */
export async function settlements(chain: TestChain, payer: Address, payTo: Address = PAY_TO) {
  const logs = await chain.client.getLogs({
    address: chain.network.usdc.address,
    event: EVENTS[0],
    args: { authorizer: payer },
    fromBlock: 0n,
  });
  const found = await Promise.all(
    logs.map(async (used) => {
      const receipt = await chain.client.getTransactionReceipt({ hash: used.transactionHash });
      const transfer = parseEventLogs({ abi: EVENTS, eventName: "Transfer", logs: receipt.logs }).find(
        ({ logIndex, args }) => logIndex === used.logIndex + 1 && args.from === used.args.authorizer,
      );
      return { nonce: used.args.nonce, transaction: used.transactionHash, to: transfer?.args.to, ...transfer?.args };
    }),
  );
  return found.filter(({ to }) => to?.toLowerCase() === payTo.toLowerCase());
}

export const nothingCharged = async (chain: TestChain, payer: LocalAccount | Address): Promise<void> =>
  expect(await settlements(chain, typeof payer === "string" ? payer : payer.address)).toEqual([]);

export async function chargedOnce(chain: TestChain, { authorization }: Signed, payTo?: Address): Promise<void> {
  const found = await settlements(chain, authorization.from, payTo);
  expect(found).toMatchObject([{ nonce: authorization.nonce, value: authorization.value }]);
}

/** A 402 with its challenge; answers why the payment was not taken. */
export function expectPaymentRequired(answer: Answer): string {
  expect({ status: answer.status, body: answer.body }).toMatchObject({ status: 402, body: { x402Version: 1 } });
  expect(answer.headers.get("payment-response")).toBeNull();
  expect(challengeOf(answer).error).toBe(answer.body.error);
  return String(answer.body.error);
}

/** A problem of the catalogue, in RFC 9457 form and without a payment's result. */
export function expectProblem(answer: Answer, status: number, code: string): void {
  expect({ status: answer.status, ...answer.body }).toMatchObject({
    status,
    code,
    detail: expect.any(String),
    request_id: expect.any(String),
  });
  expect(answer.headers.get("content-type")).toBe("application/problem+json");
  expect(answer.headers.get("payment-response")).toBeNull();
}

const DUMP =
  "SELECT payment::text AS row FROM payment UNION ALL SELECT relay::text FROM relay UNION ALL SELECT certificate::text FROM certificate";

/** No answer, log line or row of the database holds r or s of anything that was signed in this file. */
export async function expectNoSignatureAnywhere(service: TestService): Promise<void> {
  const rows = await withClient(service.database.ownerUrl, async (client) =>
    (await client.query<{ row: string }>(DUMP)).rows.map(({ row }) => row),
  );
  const secrets = witnessed.signatures.flatMap((s) => [s.slice(2, 66), s.slice(66, 130)]);
  expect(secrets.length).toBeGreaterThan(0);
  const places = Object.entries({ answers: witnessed.answers, logs: service.logged, rows });
  const leaks = places.flatMap(([place, texts]) =>
    texts.flatMap((text) => {
      const plain = decoded(text);
      return secrets.some((secret) => plain.includes(secret)) ? [{ place, text }] : [];
    }),
  );
  expect(leaks).toEqual([]);
}

/** The text in lower case with its base64 words readable too. */
const decoded = (text: string): string =>
  `${text}${(text.match(/[A-Za-z0-9+/=]{64,}/g) ?? []).map((word) => Buffer.from(word, "base64").toString("latin1")).join("")}`.toLowerCase();
