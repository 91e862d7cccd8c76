import {
  createMcpHandler,
  isLegacyRequest,
  McpServer,
  type ToolAnnotations,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import type { FreeParts, ToolFacts } from "./free-tool.ts";
import { FREE_TOOLS } from "./tools/free.ts";

/** How the product introduces itself to MCP clients. */
const IMPLEMENTATION = { name: "agent-payment-trust", title: "Agent Payment Trust Service", version: "1.0.0" };

export const READS: ToolAnnotations = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: true,
};

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
 * Every answer is structured, and repeated as JSON text for clients that only read text. What `run` throws becomes a
 * tool error.
 */
export function register(
  server: McpServer,
  { name, title, description, input, output }: ToolFacts,
  { annotations, run }: Registered,
): void {
  const config = { title, description, inputSchema: input, outputSchema: output, annotations };
  server.registerTool(name, config, async (given) => {
    const structuredContent = await run(given);
    return { structuredContent, content: [{ type: "text", text: JSON.stringify(structuredContent) }] };
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
