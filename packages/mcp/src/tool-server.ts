import type { McpServer, ToolAnnotations } from "@modelcontextprotocol/server";
import { freeServer, READS, register } from "./free-server.ts";
import { formatUsd } from "./money.ts";
import type { PaidParts, PaidTool } from "./paid-tool.ts";
import type { Product } from "./products.ts";
import type { Service } from "./service.ts";
import { askTerms } from "./shop.ts";
import { amountOf } from "./terms.ts";
import { arbiterVerify } from "./tools/arbiter-verify.ts";
import { certify } from "./tools/certify.ts";
import { MY_PURCHASES, type WalletParts } from "./tools/my-purchases.ts";
import { scoreBatch, scoreWallet } from "./tools/scores.ts";

/** The tools that pay from the user's wallet. */
export const PAID_TOOLS: readonly PaidTool[] = [scoreWallet, scoreBatch, certify, arbiterVerify];

/** Payments are not refundable, so clients should ask their user. */
const PAYS: ToolAnnotations = {
  readOnlyHint: false,
  destructiveHint: true,
  idempotentHint: false,
};

/** Short, because an MCP client is waiting for its tools. */
const QUOTE_TIMEOUT_MS = 5_000;

/** Returns a server with all tools. Requests the prices for its descriptions once, here. */
export async function toolServer(parts: PaidParts & WalletParts): Promise<McpServer> {
  const server = freeServer(parts);
  register(server, MY_PURCHASES, { annotations: READS, run: (input) => MY_PURCHASES.run(input, parts) });
  const prices = await Promise.all(
    PAID_TOOLS.map(async ({ sells }) => (await Promise.all(sells.map((one) => quoted(parts.service, one)))).join(" ")),
  );
  for (const [place, tool] of PAID_TOOLS.entries()) {
    const description = `${tool.description} Spends the user's USDC on Base: ${prices[place]}`;
    const run = (input: Record<string, unknown>) => tool.run(input, parts);
    register(server, { ...tool, description }, { annotations: PAYS, run });
  }
  return server;
}

/**
 * Returns a product's price for people, from the service's own terms, or the published price if they cannot be read.
 */
async function quoted(service: Service, { path, price }: Product): Promise<string> {
  try {
    const [offer] = (await askTerms(service, { path, body: {}, timeoutMs: QUOTE_TIMEOUT_MS })).accepts;
    // Models read descriptions, so only the number is taken from the service.
    if (offer !== undefined) return `${path} ${formatUsd(amountOf(offer))} USDC.`;
  } catch {
    // When called, the tool itself reports the error.
  }
  return `${path} ${formatUsd(price)} USDC, as published; the service did not return its terms.`;
}
