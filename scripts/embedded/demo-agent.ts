import { setTimeout as delay } from "node:timers/promises";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { devAccount } from "./dev-accounts.ts";

/** The demo agent: the last of the well-known development accounts. */
export const DEMO_WALLET = devAccount(9).address;

const PAY_WITHIN_MS = 60_000;

/** Buys one certificate over x402 like any agent, with the stock client, and returns its URL. */
export async function payAsDemoAgent(baseUrl: string): Promise<string> {
  const client = new x402Client().register("eip155:8453", new ExactEvmScheme(devAccount(9)));
  const response = await wrapFetchWithPayment(patientFetch, client)(`${baseUrl}/test/basic`, {
    method: "POST",
    signal: AbortSignal.timeout(PAY_WITHIN_MS),
  });
  const text = await response.text();
  if (!response.ok)
    throw new Error(`The demo payment failed: POST /test/basic returned ${response.status}.\n${text.slice(0, 2_000)}`);
  const { cert_url: url }: { cert_url?: unknown } = JSON.parse(text);
  if (typeof url !== "string") throw new Error(`The demo payment returned no cert_url:\n${text.slice(0, 2_000)}`);
  return url;
}

/** Resends the same header after a 503, instead of signing again. */
const patientFetch: typeof fetch = async (input, init) => {
  for (;;) {
    const response = await fetch(input instanceof Request ? input.clone() : input, init);
    if (response.status !== 503) return response;
    await delay(1_000);
  }
};
