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

/** How the product introduces itself to MCP clients. */
const IMPLEMENTATION = { name: "agent-payment-trust", title: "Agent Payment Trust Service", version: "1.0.0" };

/** The other hints mean something only where a tool changes anything. */
export const READS: ToolAnnotations = { readOnlyHint: true };

/** A server with the free tools. */
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
 * Every answer is one JSON text, which every client hands to its model. There is no `structuredContent` beside it: clients that
 * pass on both would read each answer twice, and a schema of every answer would be read before every conversation. What `run`
 * throws, and an answer that does not fit its schema, becomes a tool error.
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
      throw new ServiceError(`The service's answer is not as expected: ${z.prettifyError(error)}`);
    return { content: [{ type: "text", text: JSON.stringify(answer) }] };
  });
}

/**
 * The free tools over streamable HTTP, without sessions, as served at `POST /mcp`. Every answer is one JSON document: a tool
 * sends nothing before its result.
 */
export function freeHandler(parts: FreeParts): (request: Request) => Promise<Response> {
  const current = createMcpHandler(() => freeServer(parts), { maxSubscriptions: 0 });
  return async (request) => ((await isLegacyRequest(request)) ? answerLegacy(parts, request) : current.fetch(request));
}

/** The library's own answer to earlier versions of MCP is a stream. */
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
