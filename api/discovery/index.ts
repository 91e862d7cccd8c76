import type { Config } from "../platform/config/config.ts";
import { isAway } from "../platform/db/connection.ts";
import type { Listed } from "../platform/http/route.ts";
import { type Platform, type Table, under } from "../platform/slice.ts";
import { documentRoutes, mcpRoute } from "./routes.ts";

export { costOf, paidListing } from "./paid-listing.ts";

/** Creates the machine-readable documents and the free tools over MCP. */
export function createDiscovery({ keys: { signJws }, log, now }: Platform, config: Config) {
  const { baseUrl, payTo, securityContact } = config;
  const facilitator = "remote" in config.facilitator ? config.facilitator.remote : baseUrl;
  const toolFailed = (error: unknown) => log.error({ err: error }, "a tool failed");
  return {
    documents: (routes: Table): readonly Listed[] =>
      under("Discovery", documentRoutes({ routes, baseUrl, payTo, facilitator, securityContact, signJws, now })),
    mcp: (routes: Table): readonly Listed[] => under("Discovery", [mcpRoute(routes, { baseUrl, toolFailed, isAway })]),
  };
}
