import { wrap as wrapFaremeter } from "@faremeter/fetch";
import { createPaymentHandler } from "@faremeter/payment-evm/exact";
import { createLocalWallet } from "@faremeter/wallet-evm";
import { x402Client as AxiosClient, wrapAxiosWithPayment } from "@x402/axios";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import axios from "axios";
import type { HDAccount } from "viem/accounts";
import { withPaymentInterceptor } from "x402-axios";
import { wrapFetchWithPayment as wrapFetchV1 } from "x402-fetch";
import { privateKeyOf } from "../../scripts/embedded/dev-accounts.ts";

/** What a client got in the end. */
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

/** The clients that agents use today, as their documentation says to set them up. */
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
      const { status, data } = await wrapAxiosWithPayment(axios.create(), client).post(url);
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
      const { status, data } = await withPaymentInterceptor(axios.create(), account).post(url);
      return { status, body: data };
    },
  },
  {
    name: "@faremeter/fetch",
    version: "v2",
    async post(url, account) {
      const wallet = await createLocalWallet({ id: 8453, name: "Base" }, privateKeyOf(account));
      const handlers = [createPaymentHandler(wallet)];
      return received(await wrapFaremeter(fetch, { handlers })(url, { method: "POST" }));
    },
  },
];
