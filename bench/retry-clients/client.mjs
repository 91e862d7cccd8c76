// Buys once with a stock client behind a retry wrapper: node client.mjs <client> <wrapper> <url>, PAYER_PRIVATE_KEY=0x…
// Every wrapper retries a POST three times in all, on a lost connection and on a status from 500 up.
import { x402Client as AxiosClient, wrapAxiosWithPayment } from "@x402/axios";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import axios from "axios";
import axiosRetry from "axios-retry";
import ky from "ky";
import pRetry from "p-retry";
import { privateKeyToAccount } from "viem/accounts";
import { withPaymentInterceptor } from "x402-axios";
import { wrapFetchWithPayment as wrapFetchV1 } from "x402-fetch";

const [client, wrapper, url] = process.argv.slice(2);
const account = privateKeyToAccount(process.env.PAYER_PRIVATE_KEY);
const STATUSES = [500, 502, 503, 504];

const fetchers = {
  "@x402/fetch": (inner) =>
    wrapFetchWithPayment(inner, new x402Client().register("eip155:*", new ExactEvmScheme(account))),
  "x402-fetch": (inner) => wrapFetchV1(inner, account, 10_000_000n),
};
const axiosWrappers = {
  "@x402/axios": (instance) =>
    wrapAxiosWithPayment(instance, new AxiosClient().register("eip155:*", new ExactEvmScheme(account))),
  "x402-axios": (instance) => withPaymentInterceptor(instance, account),
};

const again = { retries: 2, minTimeout: 200 };
const kyOptions = { retry: { limit: 2, methods: ["post"], statusCodes: STATUSES }, timeout: false };
const retriedAxios = (instance) => {
  const retryCondition = (error) => axiosRetry.isNetworkError(error) || axiosRetry.isRetryableError(error);
  axiosRetry(instance, { retries: 2, retryDelay: () => 200, retryCondition });
  return instance;
};

/** Rejects unless the answer is good, as a caller of `fetch` writes it. */
const buy = async (paying) => {
  const response = await paying(url, { method: "POST" });
  if (!response.ok) throw new Error(`status ${response.status}`);
  return response.status;
};

const throughFetch = (wrap) => ({
  bare: () => buy(wrap(fetch)),
  "p-retry around it": () => pRetry(() => buy(wrap(fetch)), again),
  "ky around it": () => ky.post(url, { ...kyOptions, fetch: wrap(fetch) }),
  "ky inside it": () =>
    buy(wrap((input, init) => ky(input, { ...init, ...kyOptions, throwHttpErrors: (status) => status >= 500 }))),
});
const throughAxios = (wrap) => ({
  bare: () => wrap(axios.create()).post(url),
  "p-retry around it": () => pRetry(() => wrap(axios.create()).post(url), again),
  "axios-retry added before it": () => wrap(retriedAxios(axios.create())).post(url),
  "axios-retry added after it": () => retriedAxios(wrap(axios.create())).post(url),
});

const runs = client in fetchers ? throughFetch(fetchers[client]) : throughAxios(axiosWrappers[client]);
await runs[wrapper]().then(
  ({ status }) => console.log("answered", status ?? ""),
  (error) => console.log("gave up:", error.message),
);
