import { type ArbiterRouteParts, arbiterRoutes } from "./arbiter/routes.ts";
import { type BoardRouteParts, boardRoutes } from "./board/routes.ts";
import { type CafeRouteParts, cafeRoutes } from "./cafe/routes.ts";
import { type BehaviourRouteParts, behaviourRoutes } from "./certification/behaviour/routes.ts";
import { type CertificationRouteParts, certificationRoutes, inspectRoute } from "./certification/routes.ts";
import { type DiscoveryParts, discoveryRoutes } from "./discovery/routes.ts";
import { type DemoRouteParts, demoRoutes } from "./escrow/demo/routes.ts";
import { type EscrowRouteParts, escrowRoutes } from "./escrow/routes.ts";
import type { Route } from "./kernel/route.ts";
import { type ScoreRouteParts, scoreRoutes } from "./score/routes.ts";
import type { PublicJwk } from "./signing/keys.ts";
import { signingRoutes } from "./signing/routes.ts";

export interface CatalogParts
  extends CertificationRouteParts,
    BehaviourRouteParts,
    BoardRouteParts,
    ScoreRouteParts,
    ArbiterRouteParts,
    EscrowRouteParts,
    DemoRouteParts,
    CafeRouteParts,
    Omit<DiscoveryParts, "routes"> {
  readonly publicKeys: readonly PublicJwk[];
}

/** The one table of routes. Mounting, 402 terms and every published list are derived from it. */
export function catalog(parts: CatalogParts): readonly Route[] {
  const table: readonly Route[] = [
    ...discoveryRoutes({ ...parts, routes: () => table }),
    ...certificationRoutes(parts),
    ...behaviourRoutes(parts),
    ...scoreRoutes(parts),
    ...arbiterRoutes(parts),
    ...escrowRoutes(parts),
    ...demoRoutes(parts),
    ...cafeRoutes(parts),
    inspectRoute(() => table, parts.baseUrl),
    ...boardRoutes(parts),
    ...signingRoutes(parts.publicKeys, parts.baseUrl),
  ];
  return table;
}
