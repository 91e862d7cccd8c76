import { setTimeout as sleep } from "node:timers/promises";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { x402Client, x402HTTPClient } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";
import { Failure, formatUsd } from "./fields.ts";

const NETWORK = "eip155:8453";
/** Circle's USDC on Base. */
const USDC = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913";
/** The longest validity of a signed authorization. */
const MAX_TIMEOUT_SECONDS = 300;
const PATIENCE_MS = 60_000;
const RESENDS = 10;
const PAUSE_MS = 3_000;

type PaymentRequirements = ReturnType<x402HTTPClient["getPaymentRequiredResponse"]>["accepts"][number];

export interface Order {
  readonly url: string;
  /** Atomic USDC. */
  readonly maxPrice: bigint;
  readonly privateKey: `0x${string}`;
}

export const walletOf = (privateKey: `0x${string}`): string => privateKeyToAccount(privateKey).address;

/**
 * Buys once: requests the terms, refuses anything but USDC on Base or a price above the limit, signs, and resends the
 * same payment until it is answered. Never signs twice.
 * @throws Failure that states whether anything was signed
 */
export async function buy({
  url,
  maxPrice,
  privateKey,
}: Order): Promise<{ readonly body: unknown; readonly paid: bigint }> {
  const unpaid = await post(url, {}).catch((error: unknown) => {
    throw new Failure(`${url} did not respond: ${String(error)}. Nothing was signed.`);
  });
  if (unpaid.status !== 402)
    throw new Failure(`${url} answered ${unpaid.status} instead of terms. Nothing was signed.`);
  const client = new x402Client().register(NETWORK, new ExactEvmScheme(privateKeyToAccount(privateKey)));
  const http = new x402HTTPClient(client.setSpendControls({ maxAmountPerPayment: `$${formatUsd(maxPrice)}` }));
  const { x402Version, resource, accepts } = http.getPaymentRequiredResponse((name) => unpaid.headers.get(name));
  const offer = accepts.find(
    ({ scheme, network, asset }) => scheme === "exact" && network === NETWORK && String(asset).toLowerCase() === USDC,
  );
  if (offer === undefined) throw new Failure(`${url} does not accept USDC on Base. Nothing was signed.`);
  checkForm(url, offer);
  const paid = BigInt(offer.amount);
  if (paid > maxPrice)
    throw new Failure(
      `${url} costs ${formatUsd(paid)} USDC, more than max-price ${formatUsd(maxPrice)}. Nothing was signed.`,
    );
  const payment = await client.createPaymentPayload({ x402Version, resource, accepts: [offer] });
  return { body: await settle(url, http.encodePaymentSignatureHeader(payment)), paid };
}

/**
 * The terms are untrusted JSON: if `maxTimeoutSeconds` were a string, the stock client would sign for thousands of
 * years.
 */
function checkForm(url: string, { amount, maxTimeoutSeconds, extra }: PaymentRequirements): void {
  const refused = Object.entries({
    amount: typeof amount === "string" && /^[1-9]\d{0,18}$/.test(amount),
    maxTimeoutSeconds:
      Number.isInteger(maxTimeoutSeconds) && maxTimeoutSeconds > 0 && maxTimeoutSeconds <= MAX_TIMEOUT_SECONDS,
    "extra.assetTransferMethod": (extra?.assetTransferMethod ?? "eip3009") === "eip3009",
  }).flatMap(([field, isAccepted]) => (isAccepted ? [] : [field]));
  if (refused.length > 0) throw new Failure(`${url} has terms with a wrong ${refused.join(", ")}. Nothing was signed.`);
}

async function settle(url: string, headers: Readonly<Record<string, string>>): Promise<unknown> {
  let lastResponse = "";
  for (let time = 0; time <= RESENDS; time += 1) {
    const answer = await post(url, headers).catch((error: unknown) => String(error));
    if (typeof answer !== "string") {
      const text = await answer.text();
      if (answer.status === 200) return JSON.parse(text);
      if (answer.status < 500 && answer.status !== 429)
        throw new Failure(`The payment was rejected (${answer.status}) and nothing was charged: ${text.slice(0, 300)}`);
    }
    lastResponse = typeof answer === "string" ? answer : `status ${answer.status}`;
    await sleep(PAUSE_MS);
  }
  throw new Failure(
    `The payment was signed and sent, but there is still no answer: ${lastResponse}. Check the wallet's record before the next run.`,
  );
}

const post = (url: string, headers: Readonly<Record<string, string>>): Promise<Response> =>
  fetch(url, { method: "POST", headers, redirect: "error", signal: AbortSignal.timeout(PATIENCE_MS) });
