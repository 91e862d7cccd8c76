import type { Context } from "hono";
import { VERSION } from "../platform/about.ts";
import { json, type Output } from "../platform/http/output.ts";
import type { FreeRoute, Listed, Route } from "../platform/http/route.ts";
import type { Address } from "../platform/wallet.ts";
import type { FlattenedJws } from "../platform/signing/flattened-jws.ts";
import { agentCard } from "./agent-card.ts";
import { registration } from "./agent-registration.ts";
import { AGENT_CARD, MANIFEST, OPEN_API, REGISTRATION } from "./discovery-schemas.ts";
import { llmsFullTxt, llmsTxt } from "./llms.ts";
import { manifest } from "./manifest.ts";
import { openApiDocument } from "./openapi/document.ts";
import { SECURITY_PATH, securityTxt } from "./security-txt.ts";

export interface DocumentRouteParts {
  /** The whole table, including these routes; complete by the time they are called. */
  readonly routes: () => readonly Listed[];
  readonly baseUrl: string;
  readonly payTo: Address;
  /** The facilitator's URL. */
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

/** What the service tells programs about itself. Everything derives from the table, once, on first request. */
export function documentRoutes(parts: DocumentRouteParts): readonly Route[] {
  const { routes, baseUrl, securityContact: contact, now } = parts;
  const lastUpdated = now();
  const card = once(() => agentCard({ ...parts, routes: routes(), version: VERSION }));
  const file = once(() => registration(baseUrl));
  const openApi = once(() => openApiDocument({ routes: routes(), baseUrl, version: VERSION, contact }));
  const listing = once(() => manifest({ ...parts, routes: routes(), lastUpdated }));
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

/** The text of a document, written on first request, when the table is complete. */
function once(make: () => string | object | Promise<object>): () => Promise<string> {
  let text: Promise<string> | null = null;
  const write = async (): Promise<string> => {
    const made = await make();
    return typeof made === "string" ? made : JSON.stringify(made);
  };
  return () => {
    text ??= write();
    return text;
  };
}
