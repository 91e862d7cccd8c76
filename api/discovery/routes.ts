import { type Context, Hono } from "hono";
import { z } from "zod";
import { freeHandler } from "../../packages/mcp/src/free-server.ts";
import type { Service } from "../../packages/mcp/src/service.ts";
import { FREE_TOOLS } from "../../packages/mcp/src/tools/free.ts";
import { VERSION } from "../platform/about.ts";
import { accepts } from "../platform/http/accept.ts";
import { json, type Output } from "../platform/http/answer.ts";
import { PROBLEMS, problemBody, problemOf } from "../platform/http/errors.ts";
import { readBody } from "../platform/http/request.ts";
import { type FreeRoute, type Listed, mountPath, type Route } from "../platform/http/route.ts";
import { once } from "../platform/memo.ts";
import type { FlattenedJws } from "../platform/signing/document.ts";
import type { Address } from "../platform/wallet.ts";
import { agentCard, registration } from "./agent-card.ts";
import { llmsFullTxt, llmsTxt } from "./llms.ts";
import { manifest } from "./manifest.ts";
import { openApiDocument } from "./openapi.ts";
import { AGENT_CARD, MANIFEST, OPEN_API, REGISTRATION } from "./schemas.ts";
import { SECURITY_PATH, securityTxt } from "./security-txt.ts";

export interface DocumentRouteParts {
  /** The whole table, including these routes; complete by the time they are called. */
  readonly routes: () => readonly Listed[];
  readonly baseUrl: string;
  readonly payTo: Address;
  readonly facilitator: string;
  /** A URI for vulnerability reports. */
  readonly securityContact: string;
  readonly signJws: (payload: string) => Promise<FlattenedJws>;
  readonly now: () => Date;
}

interface Published {
  readonly output: Output;
  readonly write: () => string | Promise<string>;
}

const JSON_TYPE = "application/json";
const TEXT = "text/plain; charset=utf-8";
const CACHED = { "cache-control": "public, max-age=300" };
const PLAIN: Output = { "text/plain": null };

/** Creates the machine-readable documents. Each is derived from the route table on its first request. */
export function documentRoutes(parts: DocumentRouteParts): readonly Route[] {
  const { routes, baseUrl, securityContact: contact, now } = parts;
  const lastUpdated = now();
  const card = written(() => agentCard({ ...parts, routes: routes(), version: VERSION }));
  const file = written(() => registration(baseUrl));
  const openApi = written(() => openApiDocument({ routes: routes(), baseUrl, version: VERSION, contact }));
  const listing = written(() => manifest({ ...parts, routes: routes(), lastUpdated }));
  const llms = once(() => llmsTxt({ routes: routes(), baseUrl }));
  const llmsFull = once(() => llmsFullTxt({ routes: routes(), baseUrl }));
  const security = () => securityTxt({ contact, baseUrl, now: now() });
  const route = (path: string, summary: string, { output, write }: Published): FreeRoute => {
    const type = output === PLAIN ? TEXT : JSON_TYPE;
    const handle = async (c: Context) => c.body(await write(), 200, { "content-type": type, ...CACHED });
    return { method: "GET", path, summary, output, handle };
  };
  return [
    route("/openapi.json", "The OpenAPI 3.1 description of every route", { output: json(OPEN_API), write: openApi }),
    route("/.well-known/x402", "Every paid resource, with its terms and schemas", {
      output: json(MANIFEST),
      write: listing,
    }),
    ...["/.well-known/agent-card.json", "/.well-known/agent.json", "/agent-card"].map((path) =>
      route(path, "The signed agent card (A2A)", { output: json(AGENT_CARD), write: card }),
    ),
    ...["/.well-known/agent-registration.json", "/agent-registration"].map((path) =>
      route(path, "The agent registration file (ERC-8004)", { output: json(REGISTRATION), write: file }),
    ),
    route("/llms.txt", "Overview for language models", { output: PLAIN, write: llms }),
    route("/llms-full.txt", "Complete reference for language models", { output: PLAIN, write: llmsFull }),
    route(SECURITY_PATH, "Security contact, also for reviews of arbiter verdicts", { output: PLAIN, write: security }),
  ];
}

/** Writes a document once, on its first request, when the table is complete. */
const written = (make: () => object | Promise<object>): (() => Promise<string>) =>
  once(async () => JSON.stringify(await make()));

const EITHER_FORM = "application/json, text/event-stream";

const MESSAGE = z.looseObject({ jsonrpc: z.literal("2.0") });
/** The response if a header or the message breaks MCP's rules. */
const REFUSAL = { "application/json": MESSAGE };

/** A batch would put many calls into one request. Newer versions of MCP dropped batches. */
const NO_BATCH = {
  jsonrpc: "2.0",
  id: null,
  error: { code: -32_600, message: "Batches are not supported: send one message per request." },
};

export interface McpRouteParts {
  readonly baseUrl: string;
  /** Receives an error inside a tool. The caller only learns that the tool failed. */
  readonly toolFailed: (error: unknown) => void;
  /** Whether an error means that a component of the service is unreachable right now. */
  readonly isAway: (error: unknown) => boolean;
}

/** The free tools for agents, over MCP's streamable HTTP without sessions. They read routes of the same table. */
export function mcpRoute(routes: () => readonly Route[], parts: McpRouteParts): Route {
  const serviceFor = once(() => inProcess(routes(), parts));
  return {
    method: "POST",
    path: "/mcp",
    summary: "Free tools for agents over MCP (streamable HTTP)",
    body: MESSAGE,
    output: json(MESSAGE),
    others: { 202: {}, 400: REFUSAL, 406: REFUSAL, 415: REFUSAL },
    async handle(c) {
      const handler = freeHandler({ service: serviceFor()(c.env), logPolicy: null, askLeftOut: null });
      const text = new TextDecoder().decode(await readBody(c));
      if (text.trimStart().startsWith("[")) return c.json(NO_BATCH, 400);
      const headers = new Headers(c.req.raw.headers);
      // MCP requires clients to accept a stream too. This route also serves clients that accept only JSON.
      if (accepts(headers.get("accept") ?? undefined, "application/json")) headers.set("accept", EITHER_FORM);
      return handler(new Request(c.req.url, { method: "POST", headers, body: text }));
    },
  };
}

/** Calls on behalf of the sender of a message, whose rate limits they count against. */
type InProcess = (caller: Context["env"]) => Service;

/** The service as its tools see it: the free routes that they read, called in process. */
function inProcess(routes: readonly Route[], { baseUrl, toolFailed, isAway }: McpRouteParts): InProcess {
  const app = new Hono();
  for (const path of new Set(FREE_TOOLS.flatMap(({ reads }) => reads))) {
    const route = routeAt(routes, path);
    app.get(mountPath(route), route.handle);
  }
  app.onError((error, c) => {
    const { code, details } = problemOf(error, isAway);
    if (code === "internal_error") toolFailed(error);
    return c.json(problemBody(code, details, ""), PROBLEMS[code].status);
  });
  return (caller) => ({
    baseUrl,
    async send({ path }) {
      const response = await app.request(path, { headers: { accept: "application/json" } }, caller);
      return { status: response.status, headers: response.headers, text: await response.text() };
    },
  });
}

function routeAt(routes: readonly Route[], path: string): FreeRoute {
  const found = routes.find((route): route is FreeRoute => route.path === path && route.method === "GET");
  if (found === undefined) throw new Error(`a tool reads ${path}, which is not a free route`);
  return found;
}
