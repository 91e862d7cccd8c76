import { ABOUT } from "../platform/about.ts";
import type { Listed } from "../platform/http/route.ts";
import { SITE_NAME } from "../platform/page/page.ts";
import type { FlattenedJws } from "../platform/signing/flattened-jws.ts";
import { jcs } from "../platform/signing/proof-value.ts";
import { operationId, templatePath } from "./openapi/operation.ts";
import { costOf } from "./paid-listing.ts";

export interface CardParts {
  readonly routes: readonly Listed[];
  /** No trailing slash. */
  readonly baseUrl: string;
  readonly version: string;
  /** Signs canonical JSON: a flattened JWS without its payload. */
  readonly signJws: (payload: string) => Promise<FlattenedJws>;
}

const JSON_TYPE = "application/json";

/** The agent card: the signed fields of A2A 1.0 (section 8.4), plus those that only 0.3 has. */
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
 * The service speaks plain HTTP as described by its OpenAPI document, which is not one of A2A's own bindings, so a URI
 * names it.
 */
const binding = (baseUrl: string): string => `${baseUrl}/openapi.json`;

/** Everything an agent may request; documents about the service itself are not skills. */
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
