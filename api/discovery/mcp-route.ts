import { type Context, Hono } from "hono";
import { z } from "zod";
import { freeHandler } from "../../packages/mcp/src/free-server.ts";
import type { Service } from "../../packages/mcp/src/service.ts";
import { FREE_TOOLS } from "../../packages/mcp/src/tools/free.ts";
import {
  checkListed,
  claimsOf,
  parseKeySet,
  parsePolicy,
  replayScores,
  standingOf,
  verifyDocument,
} from "../../packages/verifier/src/index.ts";
import { readBody } from "../platform/http/body.ts";
import { PROBLEMS, problemBody, problemOf } from "../platform/http/errors.ts";
import { type FreeRoute, mountPath, type Route } from "../platform/http/route.ts";

const MESSAGE = z.looseObject({ jsonrpc: z.literal("2.0") });
/** A header or the message breaks MCP's rules. */
const REFUSAL = { "application/json": MESSAGE };

/** A batch would put many calls into one request; newer versions of MCP have none. */
const NO_BATCH = {
  jsonrpc: "2.0",
  id: null,
  error: { code: -32_600, message: "Batches are not supported: send one message per request." },
};

export interface McpRouteParts {
  readonly baseUrl: string;
  /** Receives what failed inside a tool; its caller only learns that something did. */
  readonly toolFailed: (error: unknown) => void;
  /** Whether an error says that a part of ours cannot be reached at the moment. */
  readonly isAway: (error: unknown) => boolean;
}

/** The free tools for agents, over MCP's streamable HTTP without sessions. They read the routes of this same table. */
export function mcpRoute(routes: () => readonly Route[], parts: McpRouteParts): Route {
  let serviceFor: InProcess | null = null;
  return {
    method: "POST",
    path: "/mcp",
    summary: "Free tools for agents over MCP (streamable HTTP)",
    body: MESSAGE,
    output: { "application/json": MESSAGE, "text/event-stream": null },
    others: { 202: {}, 400: REFUSAL, 406: REFUSAL, 415: REFUSAL },
    async handle(c) {
      serviceFor ??= inProcess(routes(), parts);
      const handler = freeHandler({
        service: serviceFor(c.env),
        verifier: { parseKeySet, verifyDocument, replayScores, parsePolicy, checkListed, claimsOf, standingOf },
        logPolicy: null,
        askLeftOut: null,
      });
      const text = new TextDecoder().decode(await readBody(c));
      if (text.trimStart().startsWith("[")) return c.json(NO_BATCH, 400);
      return handler(new Request(c.req.url, { method: "POST", headers: c.req.raw.headers, body: text }));
    },
  };
}

/** On behalf of the sender of a message: its questions are counted as its own. */
type InProcess = (caller: Context["env"]) => Service;

/** The service as its own tools see it: the free routes they name, called without a network. */
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
  if (found === undefined) throw new Error(`a tool reads ${path}, which is no free route`);
  return found;
}
