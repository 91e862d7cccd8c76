import { type ArbiterRouteParts, arbiterRoutes } from "./arbiter/arbiter-routes.ts";
import { type BoardRouteParts, boardRoutes } from "./board/board-routes.ts";
import { type CafeRouteParts, cafeRoutes } from "./cafe/cafe-routes.ts";
import { type BehaviourRouteParts, behaviourRoutes } from "./certificates/sessions/behaviour-routes.ts";
import {
  type CertificationRouteParts,
  certificationRoutes,
  inspectRoute,
} from "./certificates/certification-routes.ts";
import { type RetryRouteParts, retryRoutes } from "./certificates/retry/retry-routes.ts";
import { type DocumentRouteParts, documentRoutes } from "./discovery/document-routes.ts";
import { type McpRouteParts, mcpRoute } from "./discovery/mcp-route.ts";
import { contestRoutes } from "./escrow/contest/contest-routes.ts";
import { type DemoRouteParts, demoRoutes } from "./escrow/demo/demo-routes.ts";
import { type EscrowRouteParts, escrowRoutes } from "./escrow/escrow-routes.ts";
import type { Listed, Route, Tag } from "./platform/http/route.ts";
import type { Hex } from "./platform/wallet.ts";
import { type LogRouteParts, logRoutes } from "./log/log-routes.ts";
import { type ProofRouteParts, proofRoutes } from "./log/proof-routes.ts";
import { type StatusRouteParts, statusRoutes } from "./operations/status-routes.ts";
import { type PackageRouteParts, packageRoutes } from "./site/packages/package-routes.ts";
import { type ReceiptRouteParts, receiptRoutes } from "./payments/receipt-routes.ts";
import { type PurchaseRouteParts, purchaseRoutes } from "./purchases/purchase-routes.ts";
import { type ScoreRouteParts, scoreRoutes } from "./score/score-routes.ts";
import { type ExamRouteParts, examRoutes } from "./sellers/exam-routes.ts";
import { type PublishedRouteParts, publishedRoutes } from "./sellers/published/published-routes.ts";
import { type SettlementRouteParts, settlementRoutes } from "./settlement-status/settlement-routes.ts";
import { signingRoutes } from "./platform/signing/key-routes.ts";
import type { PublicJwk } from "./platform/signing/keys.ts";
import { crawlerRoutes } from "./site/crawler-routes.ts";
import { type GuideRouteParts, guideRoutes } from "./site/guide-routes.ts";
import { type HomeRouteParts, homeRoutes } from "./site/home-routes.ts";

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
