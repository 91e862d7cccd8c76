import { ABOUT } from "../platform/about.ts";
import type { Listed } from "../platform/http/route.ts";
import { SITE_NAME } from "../platform/page/page.ts";
import { didWeb } from "../platform/signing/did.ts";
import { type FlattenedJws, jcs } from "../platform/signing/document.ts";
import { operationId, templatePath } from "./openapi.ts";
import { costOf } from "./paid-listing.ts";

export interface CardParts {
  readonly routes: readonly Listed[];
  /** No trailing slash. */
  readonly baseUrl: string;
  readonly version: string;
  /** Signs canonical JSON and returns a flattened JWS without its payload. */
  readonly signJws: (payload: string) => Promise<FlattenedJws>;
}

const JSON_TYPE = "application/json";

/** Returns the agent card: the signed fields of A2A 1.0 (section 8.4), plus the fields that only 0.3 has. */
export async function agentCard({ routes, baseUrl, version, signJws }: CardParts) {
  const card = {
    name: SITE_NAME,
    description: ABOUT,
    supportedInterfaces: [{ url: baseUrl, protocolBinding: binding(baseUrl), protocolVersion: "1.0" }],
    provider: { organization: SITE_NAME, url: baseUrl },
    version,
    documentationUrl: `${baseUrl}/llms.txt`,
    iconUrl: `${baseUrl}/favicon.svg`,
    capabilities: { streaming: false, pushNotifications: false },
    defaultInputModes: [JSON_TYPE],
    defaultOutputModes: [JSON_TYPE],
    skills: routes.filter(isSkill).map((route) => skill(route, baseUrl)),
  };
  return {
    ...card,
    url: baseUrl,
    preferredTransport: binding(baseUrl),
    protocolVersion: "0.3.0",
    supportsAuthenticatedExtendedCard: false,
    signatures: [await signJws(jcs(card))],
  };
}

/**
 * The service speaks plain HTTP, as its OpenAPI document describes. A2A has no binding for that, so a URI identifies it.
 */
const binding = (baseUrl: string): string => `${baseUrl}/openapi.json`;

/** Documents about the service itself are not skills. */
const isSkill = ({ tag, output }: Listed): boolean => tag !== "Discovery" && tag !== "Keys" && JSON_TYPE in output;

function skill(route: Listed, baseUrl: string) {
  const cost = costOf(route);
  const about = "description" in route ? ` ${route.description}` : "";
  return {
    id: operationId(route),
    name: route.summary,
    description: `${route.method} ${baseUrl}${templatePath(route.path)} (${cost ?? "free"}).${about}`,
    tags: [route.tag.toLowerCase(), cost === null ? "free" : "x402"],
    inputModes: [JSON_TYPE],
    outputModes: Object.keys(route.output),
  };
}

/**
 * Returns the registration file of ERC-8004. The service is not in an identity registry and publishes the file only for
 * discovery, so it lists no trust model of that standard.
 */
export const registration = (baseUrl: string) => ({
  type: "https://eips.ethereum.org/EIPS/eip-8004#registration-v1",
  name: SITE_NAME,
  description: ABOUT,
  image: `${baseUrl}/favicon.svg`,
  services: [
    { name: "web", endpoint: `${baseUrl}/` },
    { name: "A2A", endpoint: `${baseUrl}/.well-known/agent-card.json`, version: "1.0" },
    { name: "MCP", endpoint: `${baseUrl}/mcp` },
    { name: "OpenAPI", endpoint: `${baseUrl}/openapi.json`, version: "3.1.0" },
    { name: "x402", endpoint: `${baseUrl}/.well-known/x402`, version: "2" },
    { name: "DID", endpoint: didWeb(baseUrl), version: "v1" },
  ],
  x402Support: true,
  active: true,
  registrations: [],
});
