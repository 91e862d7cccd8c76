import { API } from "./sources.ts";

/** The files outside adapters and wiring that speak HTTP. */
export const HTTP: readonly string[] = [
  "api/arbiter/arbiter-routes.ts",
  "api/board/board-routes.ts",
  "api/cafe/cafe-routes.ts",
  "api/certificates/sessions/behaviour-routes.ts",
  "api/certificates/sessions/session-routes.ts",
  "api/certificates/certification-routes.ts",
  "api/certificates/retry/retry-routes.ts",
  "api/certificates/verification-routes.ts",
  "api/discovery/document-routes.ts",
  "api/discovery/mcp-route.ts",
  "api/escrow/contest/contest-routes.ts",
  "api/escrow/demo/demo-routes.ts",
  "api/escrow/escrow-routes.ts",
  "api/log/log-routes.ts",
  "api/log/proof-routes.ts",
  "api/log/static-routes.ts",
  "api/platform/metrics/metrics-app.ts",
  "api/operations/status-routes.ts",
  "api/site/packages/package-routes.ts",
  "api/payments/lost-answer.ts",
  "api/payments/payable.ts",
  "api/payments/receipt-routes.ts",
  "api/purchases/purchase-routes.ts",
  "api/score/score-routes.ts",
  "api/sellers/exam-routes.ts",
  "api/sellers/free-exam-route.ts",
  "api/sellers/published/published-routes.ts",
  "api/settlement-status/settlement-routes.ts",
  "api/platform/signing/key-routes.ts",
  "api/site/crawler-routes.ts",
  "api/site/guide-routes.ts",
  "api/site/home-routes.ts",
];

/** The files of features that have effects, through the ports that the wiring hands in. Every other file of a feature is pure. */
export const EFFECTS: readonly string[] = [
  "api/arbiter/arbiter.ts",
  "api/arbiter/correct-verdict.ts",
  "api/arbiter/gather-evidence.ts",
  "api/arbiter/reach-verdict.ts",
  "api/arbiter/signatures.ts",
  "api/board/read-board.ts",
  "api/cafe/serve-order.ts",
  "api/certificates/sessions/run-session.ts",
  "api/certificates/certify.ts",
  "api/certificates/decoys/give-back.ts",
  "api/certificates/decoys/read-transfers.ts",
  "api/certificates/agent-registries/publish.ts",
  "api/certificates/agent-registries/take-order.ts",
  "api/certificates/proofs/publish-proofs.ts",
  "api/certificates/retry/run-retry.ts",
  "api/escrow/contest/answer-contests.ts",
  "api/escrow/demo/sell-espresso.ts",
  "api/escrow/settle-deliveries.ts",
  "api/log/anchor/make-anchors.ts",
  "api/log/find-places.ts",
  "api/log/integrate.ts",
  "api/log/prove-entries.ts",
  "api/log/public-log.ts",
  "api/log/static-log.ts",
  "api/log/trust.ts",
  "api/log/witness/ask-witnesses.ts",
  "api/log/witness/offer-checkpoint.ts",
  "api/operations/counted.ts",
  "api/operations/look-at-parts.ts",
  "api/payments/commands.ts",
  "api/payments/gate.ts",
  "api/payments/in-flight.ts",
  "api/payments/new-payment.ts",
  "api/purchases/list-purchases.ts",
  "api/score/lookup/look-up.ts",
  "api/score/read-scores.ts",
  "api/sellers/free-exam.ts",
  "api/sellers/guarded-payer.ts",
  "api/sellers/look.ts",
  "api/sellers/published/correct-exam.ts",
  "api/sellers/published/read-published.ts",
  "api/sellers/published/seller-addresses.ts",
  "api/sellers/refund.ts",
  "api/sellers/run-exam.ts",
  "api/sellers/take-order.ts",
  "api/sellers/watch-payments.ts",
  "api/settlement-status/look-up.ts",
  "api/settlement-status/sell-statement.ts",
  "api/site/count-figures.ts",
];

/** From what knows most to what knows least: a file imports from its own layer and from those below. */
const DIRECTION = ["wiring", "app", "catalog", "http", "effects", "pure", "layout", "kernel"] as const;

export type Layer = (typeof DIRECTION)[number] | "adapter";

export const rank = (layer: Exclude<Layer, "adapter">): number => DIRECTION.indexOf(layer);

/** Folders say the layer; what is filed by feature is declared above. */
export function layerOf(file: string): Layer {
  if (file.startsWith("api/adapters/")) return "adapter";
  if (file.startsWith("api/wiring/") || ["api/main.ts", "api/service.ts"].includes(file)) return "wiring";
  if (file.startsWith("api/kernel/")) return "kernel";
  if (file.startsWith("api/layout/")) return "layout";
  if (file === "api/platform/http/app.ts") return "app";
  if (file === "api/catalog.ts") return "catalog";
  if (HTTP.includes(file)) return "http";
  return EFFECTS.includes(file) ? "effects" : "pure";
}

export const filesOf = (...layers: readonly Layer[]): readonly string[] =>
  API.filter((file) => layers.includes(layerOf(file)));
