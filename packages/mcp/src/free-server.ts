import {
  createMcpHandler,
  isLegacyRequest,
  McpServer,
  type ToolAnnotations,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import type { FreeParts, ToolFacts } from "./free-tool.ts";
import { ServiceError } from "./service.ts";
import { FREE_TOOLS } from "./tools/free.ts";

/** The product's name and version for MCP clients. */
const IMPLEMENTATION = { name: "agent-payment-trust", title: "Agent Payment Trust Service", version: "1.0.0" };

/** The other hints have a meaning only for tools that change something. */
export const READS: ToolAnnotations = { readOnlyHint: true };

/** Returns a server with the free tools. */
export function freeServer(parts: FreeParts): McpServer {
  const server = new McpServer(IMPLEMENTATION);
  for (const tool of FREE_TOOLS) register(server, tool, { annotations: READS, run: (input) => tool.run(input, parts) });
  return server;
}

interface Registered {
  readonly annotations: ToolAnnotations;
  run(input: Record<string, unknown>): Promise<Record<string, unknown>>;
}

/**
 * Registers a tool. Every result is one JSON text, which every client hands to its model. There is no
 * `structuredContent`: clients that pass on both would send each result twice, and the schema of every result would be
 * part of every conversation. An exception from `run`, or a result that does not fit its schema, becomes a tool error.
 */
export function register(
  server: McpServer,
  { name, title, description, input, output }: ToolFacts,
  { annotations, run }: Registered,
): void {
  server.registerTool(name, { title, description, inputSchema: input, annotations }, async (given) => {
    const answer = await run(given);
    const { error } = output.safeParse(answer);
    if (error !== undefined)
      throw new ServiceError(`The service's answer has an unexpected form: ${z.prettifyError(error)}`);
    return { content: [{ type: "text", text: JSON.stringify(answer) }] };
  });
}

/**
 * Returns the handler for the free tools over streamable HTTP, without sessions, as served at `POST /mcp`. Every
 * response is one JSON document, because a tool sends nothing before its result.
 */
export function freeHandler(parts: FreeParts): (request: Request) => Promise<Response> {
  const current = createMcpHandler(() => freeServer(parts), { maxSubscriptions: 0 });
  return async (request) => ((await isLegacyRequest(request)) ? answerLegacy(parts, request) : current.fetch(request));
}

/** The library itself responds to earlier versions of MCP with a stream. */
async function answerLegacy(parts: FreeParts, request: Request): Promise<Response> {
  const server = freeServer(parts);
  try {
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
    await server.connect(transport);
    return await transport.handleRequest(request);
  } finally {
    await server.close();
  }
}
