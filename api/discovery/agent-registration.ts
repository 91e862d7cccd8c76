import { ABOUT } from "../platform/about.ts";
import { SITE_NAME } from "../platform/page/page.ts";
import { didWeb } from "../platform/signing/did.ts";

/**
 * The registration file of ERC-8004. The service is in no identity registry and offers itself for discovery only, so it
 * names no trust model of that standard.
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
