import { randomBytes } from "node:crypto";
import { wrap as wrapFaremeter } from "@faremeter/fetch";
import { createPaymentHandler } from "@faremeter/payment-evm/exact";
import { createLocalWallet } from "@faremeter/wallet-evm";
import { x402Client as AxiosClient, wrapAxiosWithPayment } from "@x402/axios";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import axios, { type AxiosError, type AxiosInstance, type AxiosResponse } from "axios";
import type { Address, Hex, LocalAccount } from "viem";
import { type HDAccount, HDKey, hdKeyToAccount } from "viem/accounts";
import { withPaymentInterceptor } from "x402-axios";
import { wrapFetchWithPayment as wrapFetchV1 } from "x402-fetch";
import type { Authorization } from "../../../api/platform/chain/view.ts";
import { privateKeyOf } from "../../../scripts/embedded/dev-accounts.ts";
import type { TestChain } from "../chain/chain.ts";
import { hold } from "../openapi/answers.ts";

/** A client's result. */
export interface Received {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

export interface StockClient {
  readonly name: string;
  readonly version: "v1" | "v2";
  readonly post: (url: string, account: HDAccount) => Promise<Received>;
}

const clientOf = (account: HDAccount): x402Client => new x402Client().register("eip155:*", new ExactEvmScheme(account));
const received = async (response: Response): Promise<Received> => ({
  status: response.status,
  body: (await response.json()) as Received["body"],
});

/** An axios whose responses are checked against the service's description, as with `fetch`. */
export function heldAxios(): AxiosInstance {
  const client = axios.create();
  const held = async (response: AxiosResponse) => {
    const { status, headers, data, config } = response;
    const text = typeof data === "string" ? data : JSON.stringify(data);
    const contentType = String(headers["content-type"]);
    await hold({ method: String(config.method).toUpperCase(), url: client.getUri(config), status, contentType, text });
    return response;
  };
  client.interceptors.response.use(held, async (error: AxiosError) => {
    if (error.response !== undefined) await held(error.response);
    throw error;
  });
  return client;
}

/** The clients that agents use today, configured as in their documentation. */
export const STOCK_CLIENTS: readonly StockClient[] = [
  {
    name: "@x402/fetch",
    version: "v2",
    post: async (url, account) =>
      received(await wrapFetchWithPayment(fetch, clientOf(account))(url, { method: "POST" })),
  },
  {
    name: "@x402/axios",
    version: "v2",
    async post(url, account) {
      const client = new AxiosClient().register("eip155:*", new ExactEvmScheme(account));
      const { status, data } = await wrapAxiosWithPayment(heldAxios(), client).post(url);
      return { status, body: data };
    },
  },
  {
    name: "x402-fetch",
    version: "v1",
    post: async (url, account) => received(await wrapFetchV1(fetch, account, 10_000_000n)(url, { method: "POST" })),
  },
  {
    name: "x402-axios",
    version: "v1",
    async post(url, account) {
      const { status, data } = await withPaymentInterceptor(heldAxios(), account).post(url);
      return { status, body: data };
    },
  },
  {
    name: "@faremeter/fetch",
    version: "v2",
    async post(url, account) {
      const local = await createLocalWallet({ id: 8453, name: "Base" }, privateKeyOf(account));
      // Keeps the `signTypedData` of an account that a test observes.
      const wallet = { ...local, account: { ...local.account, signTypedData: account.signTypedData } };
      const handlers = [createPaymentHandler(wallet)];
      return received(await wrapFaremeter(fetch, { handlers })(url, { method: "POST" }));
    },
  },
];

/** A new account of the kind that all stock clients accept, with USDC, and everything that it signs. */
export async function newWatchedAccount(
  chain: TestChain,
  atomic: bigint,
): Promise<{ account: HDAccount; signed: readonly Authorization[] }> {
  const own = hdKeyToAccount(HDKey.fromMasterSeed(randomBytes(32)));
  await chain.fund(own.address, atomic);
  const signed: Authorization[] = [];
  const signTypedData = async (data: Parameters<HDAccount["signTypedData"]>[0]): Promise<Hex> => {
    const { from, to, value, validAfter, validBefore, nonce } = (data as unknown as { message: Authorization }).message;
    const numbers = { value: BigInt(value), validAfter: BigInt(validAfter), validBefore: BigInt(validBefore) };
    signed.push({ from, to: to.toLowerCase() as Address, nonce, ...numbers });
    return own.signTypedData(data);
  };
  // viem's generic signature is too precise for a wrapper to repeat.
  return { account: { ...own, signTypedData: signTypedData as HDAccount["signTypedData"] }, signed };
}

/** The limits of an agent of `@x402/fetch`. */
export interface Limits {
  /** Default: the client's own limit of 1 USD per payment. */
  readonly spending?: false;
  /** The only address that it pays, and the largest amount. */
  readonly only?: { readonly payTo: Address; readonly most: bigint };
}

/** POSTs with the stock `@x402/fetch`. Returns null if the client refuses to pay. */
export async function buy(
  url: string,
  account: LocalAccount,
  { spending, only }: Limits = {},
): Promise<Received | null> {
  const client = new x402Client().register("eip155:*", new ExactEvmScheme(account));
  if (spending === false) client.setSpendControls(false);
  if (only !== undefined)
    client.registerPolicy((_, offers) =>
      offers.filter(
        ({ payTo, amount }) => payTo.toLowerCase() === only.payTo.toLowerCase() && BigInt(amount) <= only.most,
      ),
    );
  let refused = false;
  const guarded: typeof fetch = async (...request) => {
    const response = await fetch(...request);
    refused = response.status === 402;
    return response;
  };
  const response = await wrapFetchWithPayment(guarded, client)(url, { method: "POST" }).catch((error: unknown) => {
    if (!refused) throw error;
    return null;
  });
  return response === null ? null : received(response);
}
