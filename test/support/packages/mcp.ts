import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { Client, InMemoryTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { decodePaymentSignatureHeader } from "@x402/core/http";
import type { LocalAccount } from "viem";
import { onTestFinished } from "vitest";
import type { AskLeftOut } from "../../../packages/mcp/src/left-out.ts";
import { createBudget } from "../../../packages/mcp/src/money.ts";
import { askService } from "../../../packages/mcp/src/payment-state.ts";
import { keptIn } from "../../../packages/mcp/src/pending-payments.ts";
import {
  httpService,
  type Service,
  type ServiceAnswer,
  ServiceError,
  type ServiceRequest,
} from "../../../packages/mcp/src/service.ts";
import { createShop, type ShopParts } from "../../../packages/mcp/src/shop.ts";
import { toolServer } from "../../../packages/mcp/src/tool-server.ts";
import type { Policy } from "../../../packages/verifier/src/index.ts";
import { folderForFile } from "../for-file.ts";
import type { Signed } from "../payments/signing.ts";

const states = await folderForFile("mcp-states-");

/** A new folder for the payments of one or more tool servers. */
export const newStateFolder = (): string => join(states, randomUUID());

/** A tool's answer, as its client reads it. */
export interface ToolAnswer {
  readonly isError: boolean;
  /** The text of the answer: an error's message, or JSON. */
  readonly text: string;
  /** The parsed answer, or an empty object for an error. */
  readonly structured: Record<string, unknown>;
}

export const newClient = (): Client => new Client({ name: "test", version: "1.0.0" });

/** The official client on the service's own endpoint. It closes with the test. */
export async function connectHttp(url: string): Promise<Client> {
  const client = newClient();
  onTestFinished(() => client.close());
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
  return client;
}

export interface LocalPlan extends Partial<ShopParts> {
  readonly service: Service;
  /** Atomic units. Default 2 USD. */
  readonly limit?: bigint;
  readonly logPolicy?: Policy | null;
  readonly askLeftOut?: AskLeftOut | null;
}

/** The official client on a complete tool server in this process. It closes with the test. */
export async function connectLocal({
  service,
  payer = null,
  payTo = null,
  limit = 2_000_000n,
  pending,
  askPaymentState,
  giveUpAfterMs,
  logPolicy = null,
  askLeftOut = null,
}: LocalPlan): Promise<Client> {
  const shop = createShop({
    service,
    payer,
    payTo,
    budget: createBudget(limit),
    pending: pending ?? keptIn(newStateFolder()),
    askPaymentState: askPaymentState ?? askService(service),
    ...(giveUpAfterMs === undefined ? {} : { giveUpAfterMs }),
  });
  const server = await toolServer({ service, shop, payer, logPolicy, askLeftOut });
  const [near, far] = InMemoryTransport.createLinkedPair();
  const client = newClient();
  onTestFinished(() => client.close());
  await Promise.all([server.connect(far), client.connect(near)]);
  return client;
}

export async function call(client: Client, name: string, input: Record<string, unknown> = {}): Promise<ToolAnswer> {
  const answer = await client.callTool({ name, arguments: input });
  const [first] = answer.content as readonly { readonly text?: string }[];
  return {
    isError: answer.isError === true,
    text: first?.text ?? "",
    structured: answer.isError === true ? {} : JSON.parse(first?.text ?? "{}"),
  };
}

/** A proxy between the tools and the real service that records the payments sent through it. */
export interface Between extends Service {
  readonly payments: readonly string[];
}

/** A proxy that can change every response, and every paid request before it is passed on. */
export function between(
  url: string,
  change: (answer: ServiceAnswer, request: ServiceRequest) => ServiceAnswer,
  ask: (request: ServiceRequest) => ServiceRequest = (request) => request,
): Between {
  const real = httpService(url);
  const payments: string[] = [];
  return {
    baseUrl: url,
    payments,
    async send(request) {
      const payment = request.headers?.["PAYMENT-SIGNATURE"];
      if (payment !== undefined) payments.push(payment);
      return change(await real.send(payment === undefined ? request : ask(request)), request);
    },
  };
}

/** The account with a counter of its signatures. */
export function counting(account: LocalAccount): { readonly payer: LocalAccount; readonly signatures: () => number } {
  let signatures = 0;
  const signTypedData: LocalAccount["signTypedData"] = (data) => {
    signatures++;
    return account.signTypedData(data);
  };
  return { payer: { ...account, signTypedData }, signatures: () => signatures };
}

/** The outcome of paid requests: not sent, response lost, sent normally, or answered with a status. */
export type Way = "lost before" | "lost after" | "open" | { readonly status: number };

/** A connection to the service that a test can change. */
export interface Road extends Between {
  way: Way;
}

export function roadTo(url: string, way: Way): Road {
  const real = between(url, (answer) => answer);
  const road: Road = {
    baseUrl: url,
    payments: real.payments,
    way,
    async send(request) {
      if (request.headers?.["PAYMENT-SIGNATURE"] === undefined) return real.send(request);
      if (road.way === "lost before") throw new ServiceError("connection reset.");
      if (typeof road.way === "object") return { status: road.way.status, headers: new Headers(), text: "" };
      // The response is lost even if the caller gives up early.
      const answer = await real.send(road.way === "open" ? request : { ...request, timeoutMs: 10_000 });
      if (road.way === "lost after") throw new ServiceError("connection reset.");
      return answer;
    },
  };
  return road;
}

const refusal = (url: string): ServiceAnswer => ({
  status: 402,
  headers: new Headers({
    "payment-required": Buffer.from(
      JSON.stringify({ x402Version: 2, error: "never submitted", resource: { url }, accepts: [] }),
    ).toString("base64"),
  }),
  text: "{}",
});

export type ChainReport = Readonly<Record<string, unknown>>;

/** A seller that refuses and keeps every payment, and reports the facts about the chain that `reportFor` returns. */
export function refusingAt(
  url: string,
  reportFor: (asked: URLSearchParams) => ChainReport | number | null = () => null,
) {
  const kept: Signed[] = [];
  const seller = between(
    url,
    (answer, { path, headers }) => {
      const payment = headers?.["PAYMENT-SIGNATURE"];
      if (payment !== undefined) {
        kept.push(signedIn(payment));
        return refusal(url);
      }
      const report = path.startsWith("/settlement?") ? reportFor(new URL(path, url).searchParams) : null;
      if (report === null) return answer;
      return typeof report === "number"
        ? { ...answer, status: report, text: "{}" }
        : { ...answer, status: 200, text: JSON.stringify({ final: true, means: "so it is.", ...report }) };
    },
    ({ headers: _, ...request }) => request,
  );
  return { seller, kept };
}

/** The authorization in a payment header, with its signature. */
export function signedIn(header: string): Signed {
  const { authorization, signature } = decodePaymentSignatureHeader(header).payload as unknown as {
    readonly authorization: Record<"value" | "validAfter" | "validBefore", string> & Signed["authorization"];
    readonly signature: Signed["signature"];
  };
  const { value, validAfter, validBefore } = authorization;
  const amounts = { value: BigInt(value), validAfter: BigInt(validAfter), validBefore: BigInt(validBefore) };
  return { authorization: { ...authorization, ...amounts }, signature };
}

export const nonces = (payments: readonly Signed[]) => new Set(payments.map(({ authorization: { nonce } }) => nonce));

/** The service's report that the payment in question has expired. */
export const expired = (asked: URLSearchParams, change: ChainReport = {}): ChainReport => {
  const [from, nonce, valid_before] = ["from", "nonce", "valid_before"].map((name) => asked.get(name));
  const time = new Date(Number(valid_before) * 1_000).toISOString();
  return { status: "expired", from, nonce, valid_before, final_block: { time }, ...change };
};
