import { type ArbiterRouteParts, arbiterRoutes } from "./arbiter/routes.ts";
import { type BoardRouteParts, boardRoutes } from "./board/routes.ts";
import { type CafeRouteParts, cafeRoutes } from "./cafe/routes.ts";
import { type RetryRouteParts, retryRoutes } from "./certificates/retry/routes.ts";
import { type CertificationRouteParts, certificationRoutes, inspectRoute } from "./certificates/routes.ts";
import { type BehaviourRouteParts, behaviourRoutes } from "./certificates/sessions/routes.ts";
import { type DocumentRouteParts, documentRoutes, type McpRouteParts, mcpRoute } from "./discovery/routes.ts";
import { contestRoutes } from "./escrow/contest/routes.ts";
import { type DemoRouteParts, demoRoutes } from "./escrow/demo/routes.ts";
import { type EscrowRouteParts, escrowRoutes } from "./escrow/routes.ts";
import { type ProofRouteParts, proofRoutes } from "./log/proof-routes.ts";
import { type LogRouteParts, logRoutes } from "./log/routes.ts";
import { type StatusRouteParts, statusRoutes } from "./operations/routes.ts";
import { type ReceiptRouteParts, receiptRoutes } from "./payments/routes.ts";
import type { Listed, Route, Tag } from "./platform/http/route.ts";
import type { PublicJwk } from "./platform/signing/keys.ts";
import { signingRoutes } from "./platform/signing/routes.ts";
import type { Hex } from "./platform/wallet.ts";
import { type PurchaseRouteParts, purchaseRoutes } from "./purchases/routes.ts";
import { type ScoreRouteParts, scoreRoutes } from "./score/routes.ts";
import { type PublishedRouteParts, publishedRoutes } from "./sellers/published/routes.ts";
import { type ExamRouteParts, examRoutes } from "./sellers/routes.ts";
import { type SettlementRouteParts, settlementRoutes } from "./settlement-status/routes.ts";
import { type PackageRouteParts, packageRoutes } from "./site/packages/routes.ts";
import { crawlerRoutes, type GuideRouteParts, guideRoutes, type HomeRouteParts, homeRoutes } from "./site/routes.ts";

export interface CatalogParts
  extends CertificationRouteParts,
    BehaviourRouteParts,
    RetryRouteParts,
    ExamRouteParts,
    BoardRouteParts,
    ScoreRouteParts,
    ArbiterRouteParts,
    EscrowRouteParts,
    DemoRouteParts,
    PublishedRouteParts,
    SettlementRouteParts,
    CafeRouteParts,
    LogRouteParts,
    McpRouteParts,
    StatusRouteParts,
    PackageRouteParts,
    Omit<HomeRouteParts, "routes">,
    Omit<ReceiptRouteParts, "routes">,
    Omit<PurchaseRouteParts, "routes">,
    Omit<DocumentRouteParts, "routes">,
    Omit<GuideRouteParts, "routes"> {
  readonly publicKeys: readonly PublicJwk[];
}

/** The single route table. Mounting, 402 terms and every published list derive from it. */
export function catalog(parts: CatalogParts): readonly Listed[] {
  const routes = () => table;
  const table: readonly Listed[] = [
    ...under("Discovery", homeRoutes({ ...parts, routes })),
    ...under("Discovery", crawlerRoutes({ ...parts, routes })),
    ...under("Discovery", statusRoutes(parts)),
    ...under("Discovery", receiptRoutes({ ...parts, routes })),
    ...under("Discovery", purchaseRoutes({ ...parts, routes })),
    ...under("Discovery", documentRoutes({ ...parts, routes })),
    ...under("Discovery", guideRoutes({ ...parts, routes })),
    ...under("Discovery", packageRoutes(parts)),
    // Before the routes of the records whose paths they share.
    ...under("Transparency log", proofRoutes({ ...parts, exists: existence(parts) })),
    ...under("Certification", certificationRoutes(parts)),
    ...under("Certification", publishedRoutes(parts)),
    ...under("Certification", behaviourRoutes(parts)),
    ...under("Certification", retryRoutes(parts)),
    ...under("Certification", examRoutes(parts)),
    ...under("Risk score", scoreRoutes(parts)),
    ...under("Arbiter", arbiterRoutes(parts)),
    ...under("Escrow", [...escrowRoutes(parts), ...contestRoutes(parts)]),
    ...under("Escrow", demoRoutes(parts)),
    ...under("Settlement", settlementRoutes(parts)),
    ...under("Café", cafeRoutes(parts)),
    ...under("Certification", [inspectRoute(routes, parts.baseUrl)]),
    ...under("Board", boardRoutes(parts)),
    ...under("Transparency log", logRoutes(parts)),
    ...under("Discovery", [mcpRoute(routes, parts)]),
    ...under("Keys", signingRoutes(parts.publicKeys, parts.baseUrl)),
  ];
  return table;
}

/** Which records there are, for the log, which knows no feature. */
const existence = ({ certification, sellers, arbiter, escrow }: CatalogParts): ProofRouteParts["exists"] => ({
  certificate: async (id) =>
    (await certification.certificate(id)) !== null || ((await sellers.exam(id))?.placed ?? null) !== null,
  verdict: async (id) => (await arbiter.get(id)) !== null,
  evaluation: async (payment) => (await escrow.evaluation(payment as Hex)) !== null,
});

const under = (tag: Tag, routes: readonly Route[]): readonly Listed[] => routes.map((route) => ({ ...route, tag }));
