import { Client, InMemoryTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { onTestFinished } from "vitest";
import { createBudget } from "../../../packages/mcp/src/budget.ts";
import { httpService } from "../../../packages/mcp/src/http-service.ts";
import type { Service, ServiceAnswer, ServiceRequest } from "../../../packages/mcp/src/service.ts";
import { createShop, type ShopParts } from "../../../packages/mcp/src/shop.ts";
import { toolServer } from "../../../packages/mcp/src/tool-server.ts";
import { parseKeySet, replayScores, verifyDocument } from "../../../packages/verifier/src/index.ts";

/** A tool's answer, as its client reads it. */
export interface ToolAnswer {
  readonly isError: boolean;
  /** The text of the answer: an error's message, or the structured answer as JSON. */
  readonly text: string;
  readonly structured: Record<string, unknown>;
}

export const newClient = (): Client => new Client({ name: "test", version: "1.0.0" });

/** The official client on the service's own endpoint, closed with the test. */
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
}

/** The official client on a whole tool server in this process, closed with the test. */
export async function connectLocal({
  service,
  payer = null,
  payTo = null,
  limit = 2_000_000n,
}: LocalPlan): Promise<Client> {
  const shop = createShop({ service, payer, payTo, budget: createBudget(limit) });
  const server = await toolServer({ service, shop, verifier: { parseKeySet, replayScores, verifyDocument } });
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
    structured: (answer.structuredContent ?? {}) as Record<string, unknown>,
  };
}

/** A proxy between the tools and the real service that records the payments it was sent. */
export interface Between extends Service {
  readonly payments: readonly string[];
}

/** It can change every answer, and every request before passing it on. */
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
