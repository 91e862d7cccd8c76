import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { type Handler, Hono } from "hono";
import type { Address, Hex, LocalAccount } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
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
import { startTestChain, type TestChain } from "../chain/chain.ts";
import { newPayer } from "../payments/pay.ts";
import { ARBITER_KEY } from "../service/keys.ts";
import { startService, type TestService } from "../service/service.ts";
import { deployEscrow, type TestEscrow } from "./scene.ts";

/** Where merchants sell through the escrow: a chain, the contract, the service that arbitrates it, and a way to cut it off. */
export interface SaleScene {
  readonly chain: TestChain;
  readonly escrow: TestEscrow;
  readonly service: TestService;
  readonly arbiter: ArbiterFront;
  readonly stop: () => Promise<void>;
}

export async function startSaleScene(): Promise<SaleScene> {
  const chain = await startTestChain();
  const escrow = await deployEscrow(chain);
  const config = { escrowAddresses: [escrow.address], arbiterKey: ARBITER_KEY };
  const service = await startService({ chain, config });
  const arbiter = await startArbiterFront(service.url);
  return {
    chain,
    escrow,
    service,
    arbiter,
    async stop() {
      arbiter.stop();
      await service.stop();
      await chain.stop();
    },
  };
}

/** What happens to a delivery on its way to the service: it passes, the line is dead, or somebody else answers. */
export type Weather =
  | "fair"
  | "down"
  | { readonly delayMs: number }
  | { readonly status: number; readonly body: unknown };

export interface ArbiterFront {
  readonly url: string;
  /** From now on, for deliveries only. */
  readonly become: (weather: Weather) => void;
  /** The bodies of all deliveries that arrived, in any weather. */
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
      return void outgoing.writeHead(now.status, { "content-type": "application/json" }).end(JSON.stringify(now.body));
    }
    if (typeof now === "object") await new Promise((resolve) => setTimeout(resolve, now.delayMs));
    const { method = "GET", url = "/" } = incoming;
    const headers = { "content-type": "application/json", accept: incoming.headers.accept ?? "*/*" };
    const passed = await fetch(`${target}${url}`, { method, headers, body: isDelivery ? body : null });
    outgoing.writeHead(passed.status, { "content-type": "application/json" }).end(await passed.text());
  };
  // What is still being forwarded when the service stops has nobody to answer.
  const server = createServer((incoming, outgoing) => {
    answer(incoming, outgoing).catch(() => outgoing.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    become: (next) => {
      weather = next;
    },
    forwarded,
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}

export interface TestMerchant {
  readonly account: LocalAccount;
  readonly app: Hono;
  /** The merchant's server as a client sees it. */
  readonly fetch: typeof fetch;
  /** What the middleware reported. */
  readonly logged: readonly string[];
}

export const SHOP = "http://shop.example/haiku";

/** A merchant with gas that sells `POST /haiku` for 0.10 USD; the handler's calls are the test's to count. */
export async function openShop(
  { chain, arbiter }: { readonly chain: TestChain; readonly arbiter: Pick<ArbiterFront, "url"> },
  handler: Handler | undefined,
  options: Partial<EscrowedOptions> = {},
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

/** Everything that a client sent to a merchant and was answered. */
export interface Bought {
  readonly response: Response;
  /** The payment header, to be sent again. */
  readonly header: string;
  readonly id: Hex;
  readonly decision: string | null;
}

/** Buys with the stock client of `@x402/fetch`. */
export async function buyFrom(
  shop: Pick<TestMerchant, "fetch">,
  buyer: LocalAccount,
  options: EscrowSchemeOptions & { readonly url?: string } = {},
): Promise<Bought> {
  let header = "";
  const watched: typeof fetch = (input, init) => {
    const request = new Request(input, init);
    header = request.headers.get("payment-signature") ?? header;
    return shop.fetch(request);
  };
  const client = new x402Client().register("eip155:*", new EscrowScheme(buyer, options));
  const response = await wrapFetchWithPayment(watched, client)(options.url ?? SHOP, { method: "POST" });
  const id = (response.headers.get("x-escrow-payment") ?? "0x") as Hex;
  return { response, header, id, decision: response.headers.get("x-escrow-decision") };
}

/** A payment header for the merchant's offer that has not been sent. */
export async function signFor(shop: Pick<TestMerchant, "fetch">, buyer: LocalAccount, url = SHOP): Promise<string> {
  let header: string | null = null;
  const held: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    header = request.headers.get("payment-signature");
    return header === null ? shop.fetch(request) : new Response("kept");
  };
  const client = new x402Client().register("eip155:*", new EscrowScheme(buyer));
  await wrapFetchWithPayment(held, client)(url, { method: "POST" });
  if (header === null) throw new Error("The client signed nothing.");
  return header;
}

export const pay = (shop: Pick<TestMerchant, "fetch">, header: string, url = SHOP): Promise<Response> =>
  shop.fetch(url, { method: "POST", headers: { "payment-signature": header } });

export const newBuyer = (chain: TestChain, atomic = 1_000_000n): Promise<LocalAccount> => newPayer(chain, atomic);

export const statusOf = async (
  { chain, escrow }: Pick<SaleScene, "chain" | "escrow">,
  id: Hex,
): Promise<PaymentStatus> => (await readPayment(chain.client, escrow.address, id)).status;

/** How many holds of this payer the chain shows. */
export async function holdsBy({ chain, escrow }: SaleScene, payer: Address): Promise<number> {
  const filter = { address: escrow.address, abi: escrowEventsAbi, eventName: "Held", args: { payer } } as const;
  return (await chain.client.getContractEvents({ ...filter, fromBlock: 0n })).length;
}

/** The payload of a payment header, and a header again. */
export const decodeHeader = (header: string) => JSON.parse(Buffer.from(header, "base64").toString());
export const encodeHeader = (payment: unknown): string => Buffer.from(JSON.stringify(payment)).toString("base64");
