import { challenge } from "../../../api/payments/challenge.ts";
import { EXACT } from "../../../api/payments/schemes/exact.ts";
import { type LocalServer, serveHttp } from "../http-server.ts";
import { type Answer, post } from "../payments/requests.ts";
import { BASE } from "../payments/signing.ts";
import { from } from "./runs.ts";

/** The address from which it submits its customers' payments, if the service trusts the header. */
const SHOP_ADDRESS = "198.51.100.7";

/** A shop's quote. */
export interface Quote {
  readonly payTo: `0x${string}`;
  readonly value: bigint;
  readonly maxTimeoutSeconds?: number;
}

/** A shop that quotes any terms and keeps its customers' payment headers. */
export interface Shop extends LocalServer {
  quote: Quote;
  /** Submits the last customer's payment header at another URL. */
  readonly handIn: (url: string) => Promise<Answer>;
}

/** Supports both versions of x402, so that every stock client buys there. */
export async function openShop(first: Quote): Promise<Shop> {
  const kept: Record<string, string>[] = [];
  const server = await serveHttp(async (request, response) => {
    const headers = Object.entries(request.headers).filter(([name]) => /^(payment-signature|x-payment)$/.test(name));
    if (headers.length > 0) {
      kept.push(Object.fromEntries(headers) as Record<string, string>);
      response.writeHead(200, { "content-type": "application/json" }).end('{"status":"sold"}');
      return;
    }
    const { payTo, value, maxTimeoutSeconds = 60 } = shop.quote;
    const offer = {
      terms: { network: BASE.id, payTo, value },
      resource: "/goods",
      description: "Goods.",
      maxTimeoutSeconds,
    };
    const parts = { schemes: [EXACT], baseUrl: server.url };
    const { header, body } = await challenge([offer], parts, { error: "Payment required", at: new Date() });
    response.writeHead(402, { "content-type": "application/json", "payment-required": header }).end(body);
  });
  const shop: Shop = {
    ...server,
    quote: first,
    handIn(url) {
      const header = kept.at(-1);
      if (header === undefined) throw new Error("no customer has paid at the shop");
      return post(url, { ...header, ...from(SHOP_ADDRESS) });
    },
  };
  return shop;
}
