import type { IncomingMessage, ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { AuthCaptureEvmScheme } from "@x402/evm/auth-capture/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { type Handler, Hono } from "hono";
import type { Address, Hex, LocalAccount } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect } from "vitest";
import { escrowEventsAbi } from "../../../contracts/abi.ts";
import {
  type EscrowedOptions,
  EscrowScheme,
  type EscrowSchemeOptions,
  escrowed,
  memoryStore,
  type PaymentStatus,
  readPayment,
} from "../../../packages/escrow/src/index.ts";
import {
  decodePaymentHeaders,
  type PresentedPayment,
  parsePayload,
} from "../../../packages/escrow/src/payment-header.ts";
import { startTestChain, type TestChain } from "../chain/chain.ts";
import { serveHttp } from "../http-server.ts";
import { newPayer } from "../payments/signing.ts";
import { startService, type TestService } from "../service/service.ts";
import { deployEscrow, deployOperator, type TestEscrow } from "./contract.ts";

/**
 * A scene for merchants: a chain, an escrow and an operator, the service that arbitrates both, and a way to cut it off.
 */
export interface SaleScene {
  readonly chain: TestChain;
  readonly escrow: TestEscrow;
  readonly operator: TestEscrow;
  readonly service: TestService;
  readonly arbiter: ArbiterFront;
  readonly stop: () => Promise<void>;
}

export async function startSaleScene(): Promise<SaleScene> {
  const chain = await startTestChain();
  const [escrow, operator] = [await deployEscrow(chain), await deployOperator(chain)];
  await chain.caughtUp();
  const config = { escrowAddresses: [escrow.address, operator.address] };
  const service = await startService({ chain, config });
  const arbiter = await startArbiterFront(service.url);
  return {
    chain,
    escrow,
    operator,
    service,
    arbiter,
    async stop() {
      arbiter.stop();
      await service.stop();
      await chain.stop();
    },
  };
}

/** The contract's status of a payment by our scheme or the stock client's. */
export const statusOf = async (
  { chain, escrow, operator }: Pick<SaleScene, "chain" | "escrow"> & Partial<SaleScene>,
  id: Hex,
  pays: Pays = "commerce",
): Promise<PaymentStatus> => {
  const { address } = pays === "commerce" ? escrow : (operator ?? expect.fail("There is no operator."));
  return (await readPayment(chain.client, address, id)).status;
};

/** The number of this payer's holds on the chain, in both contracts. */
export async function holdsBy({ chain, escrow, operator }: SaleScene, payer: Address): Promise<number> {
  const address = [escrow.address, operator.address];
  const filter = { address, abi: escrowEventsAbi, eventName: "Held", args: { payer } } as const;
  return (await chain.client.getContractEvents({ ...filter, fromBlock: 0n })).length;
}

/** The outcome of a delivery on its way to the service. It can arrive, fail, be delayed, or get another response. */
export type Weather =
  | "fair"
  | "down"
  | { readonly delayMs: number }
  | { readonly status: number; readonly body: unknown; readonly retryAfter?: string };

export interface ArbiterFront {
  readonly url: string;
  /** Changes the outcome of deliveries from now on. */
  readonly become: (weather: Weather) => void;
  /** The bodies of all deliveries that arrived, including those that were not passed on. */
  readonly forwarded: readonly Record<string, unknown>[];
  readonly stop: () => void;
}

async function startArbiterFront(target: string): Promise<ArbiterFront> {
  let weather: Weather = "fair";
  const forwarded: Record<string, unknown>[] = [];
  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const body = await buffer(incoming);
    const isDelivery = incoming.method === "POST";
    if (isDelivery) forwarded.push(JSON.parse(body.toString()));
    const now = isDelivery ? weather : "fair";
    if (now === "down") return void outgoing.destroy();
    if (typeof now === "object" && "status" in now) {
      const later = now.retryAfter === undefined ? {} : { "retry-after": now.retryAfter };
      const headers = { "content-type": "application/json", ...later };
      return void outgoing.writeHead(now.status, headers).end(JSON.stringify(now.body));
    }
    if (typeof now === "object") await new Promise((resolve) => setTimeout(resolve, now.delayMs));
    const { method = "GET", url = "/" } = incoming;
    const headers = { "content-type": "application/json", accept: incoming.headers.accept ?? "*/*" };
    const passed = await fetch(`${target}${url}`, { method, headers, body: isDelivery ? body : null });
    outgoing.writeHead(passed.status, { "content-type": "application/json" }).end(await passed.text());
  };
  // A delivery may still be in progress when the service stops.
  const server = await serveHttp((incoming, outgoing) => {
    answer(incoming, outgoing).catch(() => outgoing.destroy());
  });
  return {
    ...server,
    become: (next) => {
      weather = next;
    },
    forwarded,
  };
}

export interface TestMerchant {
  readonly account: LocalAccount;
  readonly app: Hono;
  /** The merchant's server, as a client sees it. */
  readonly fetch: typeof fetch;
  /** The middleware's log. */
  readonly logged: readonly string[];
}

export const SHOP = "http://shop.example/haiku";

/** The options of a merchant whose account the test knows. */
export interface ShopOptions extends Partial<EscrowedOptions> {
  readonly account?: LocalAccount;
}

/** A merchant with gas that sells `POST /haiku` for 0.10 USD. The test can count the handler's calls. */
export async function openShop(
  { chain, arbiter }: { readonly chain: TestChain; readonly arbiter: Pick<ArbiterFront, "url"> },
  handler: Handler | undefined,
  options: ShopOptions = {},
): Promise<TestMerchant> {
  const account = options.account ?? privateKeyToAccount(generatePrivateKey());
  if ((await chain.client.getBalance(account)) === 0n) await chain.setBalance(account.address, 10n ** 18n);
  const logged: string[] = [];
  const log = (message: string, cause: unknown) => void logged.push(`${message} ${String(cause)}`);
  const common = { account, rpcUrl: chain.rpcUrl, price: "0.10", arbiterUrl: arbiter.url, store: memoryStore(), log };
  const app = new Hono();
  app.post("/haiku", escrowed({ ...common, ...options }, handler));
  return { account, app, logged, fetch: async (input, init) => app.fetch(new Request(input, init)) };
}

export const haiku: Handler = (c) => c.json({ haiku: "An old silent pond" });

/** A client's complete exchange with a merchant. */
export interface Bought {
  readonly response: Response;
  /** The payment header, to be sent again. */
  readonly header: string;
  readonly id: Hex;
  readonly decision: string | null;
}

/** A buyer's scheme: our "commerce", or "auth-capture" with the unmodified stock client. */
export type Pays = "commerce" | "auth-capture";

/** The stock client of a buyer. */
const clientOf = (buyer: LocalAccount, pays: Pays = "commerce", options: EscrowSchemeOptions = {}): x402Client =>
  new x402Client().register(
    "eip155:*",
    pays === "commerce" ? new EscrowScheme(buyer, options) : new AuthCaptureEvmScheme(buyer),
  );

/** Buys with the stock client of `@x402/fetch`. */
export async function buyFrom(
  shop: Pick<TestMerchant, "fetch">,
  buyer: LocalAccount,
  { url = SHOP, pays, ...options }: EscrowSchemeOptions & { readonly url?: string; readonly pays?: Pays } = {},
): Promise<Bought> {
  let header = "";
  const watched: typeof fetch = (input, init) => {
    const request = new Request(input, init);
    header = request.headers.get("payment-signature") ?? header;
    return shop.fetch(request);
  };
  const client = clientOf(buyer, pays, options);
  const response = await wrapFetchWithPayment(watched, client)(url, { method: "POST" });
  const id = (response.headers.get("x-escrow-payment") ?? "0x") as Hex;
  return { response, header, id, decision: response.headers.get("x-escrow-decision") };
}

/** An unsent payment header for the merchant's offer. */
export async function signFor(
  shop: Pick<TestMerchant, "fetch">,
  buyer: LocalAccount,
  order: string | { readonly url?: string; readonly pays: Pays } = SHOP,
): Promise<string> {
  const { url = SHOP, pays = "commerce" } = typeof order === "string" ? { url: order } : order;
  let header: string | null = null;
  const held: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    header = request.headers.get("payment-signature");
    return header === null ? shop.fetch(request) : new Response("kept");
  };
  await wrapFetchWithPayment(held, clientOf(buyer, pays))(url, { method: "POST" });
  if (header === null) throw new Error("The client signed nothing.");
  return header;
}

export const pay = (shop: Pick<TestMerchant, "fetch">, header: string, url = SHOP): Promise<Response> =>
  shop.fetch(url, { method: "POST", headers: { "payment-signature": header } });

export const newBuyer = (chain: TestChain, atomic = 1_000_000n): Promise<LocalAccount> => newPayer(chain, atomic);

/** The "commerce" payment in a header. */
export function presentedIn(header: string): PresentedPayment {
  const decoded = decodePaymentHeaders({ "PAYMENT-SIGNATURE": header });
  if (decoded === null || !("payload" in decoded)) throw new Error(`${JSON.stringify(decoded)} is not a payment.`);
  const presented = parsePayload(decoded.payload);
  if ("malformed" in presented) throw new Error(`${JSON.stringify(presented)} is malformed.`);
  return { ...presented, scheme: decoded.accepted.scheme, network: decoded.accepted.network };
}

/** Decodes and encodes a payment header. */
export const decodeHeader = (header: string) => JSON.parse(Buffer.from(header, "base64").toString());
export const encodeHeader = (payment: unknown): string => Buffer.from(JSON.stringify(payment)).toString("base64");
