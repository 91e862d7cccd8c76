import { API } from "./sources.ts";

/** The files outside adapters and wiring that speak HTTP. */
export const HTTP: readonly string[] = [
  "api/arbiter/routes.ts",
  "api/board/routes.ts",
  "api/cafe/routes.ts",
  "api/certificates/sessions/routes.ts",
  "api/certificates/sessions/routes.ts",
  "api/certificates/routes.ts",
  "api/certificates/retry/routes.ts",
  "api/certificates/verification-routes.ts",
  "api/discovery/routes.ts",
  "api/discovery/routes.ts",
  "api/escrow/contest/routes.ts",
  "api/escrow/demo/routes.ts",
  "api/escrow/routes.ts",
  "api/log/routes.ts",
  "api/log/proof-routes.ts",
  "api/log/static-routes.ts",
  "api/operations/metrics-app.ts",
  "api/operations/routes.ts",
  "api/site/packages/routes.ts",
  "api/payments/answers.ts",
  "api/payments/payable.ts",
  "api/payments/routes.ts",
  "api/purchases/routes.ts",
  "api/score/routes.ts",
  "api/sellers/routes.ts",
  "api/sellers/routes.ts",
  "api/sellers/published/routes.ts",
  "api/settlement-status/routes.ts",
  "api/platform/signing/routes.ts",
  "api/site/routes.ts",
  "api/site/routes.ts",
  "api/site/routes.ts",
];

/** The files of features that have effects, through the ports that the wiring hands in. Every other file of a feature is pure. */
export const EFFECTS: readonly string[] = [
  "api/arbiter/arbiter.ts",
  "api/arbiter/reach-verdict.ts",
  "api/arbiter/gather-evidence.ts",
  "api/arbiter/reach-verdict.ts",
  "api/arbiter/gather-evidence.ts",
  "api/board/read-board.ts",
  "api/cafe/index.ts",
  "api/certificates/sessions/run-session.ts",
  "api/certificates/certify.ts",
  "api/certificates/decoys/give-back.ts",
  "api/certificates/decoys/give-back.ts",
  "api/certificates/agent-registries/publish.ts",
  "api/certificates/agent-registries/order.ts",
  "api/certificates/proofs/publish-proofs.ts",
  "api/certificates/retry/run-retry.ts",
  "api/escrow/contest/answer-contests.ts",
  "api/escrow/demo/sell-espresso.ts",
  "api/escrow/settle-deliveries.ts",
  "api/log/anchor/make-anchors.ts",
  "api/log/log-section.ts",
  "api/log/integrate.ts",
  "api/log/prove-entries.ts",
  "api/log/prove-entries.ts",
  "api/log/static-routes.ts",
  "api/log/trust.ts",
  "api/log/witness/ask-witnesses.ts",
  "api/log/witness/offer-checkpoint.ts",
  "api/operations/counted.ts",
  "api/operations/status.ts",
  "api/payments/commands.ts",
  "api/payments/gate.ts",
  "api/payments/admission.ts",
  "api/payments/new-payment.ts",
  "api/purchases/list-purchases.ts",
  "api/score/lookup/look-up.ts",
  "api/score/read-scores.ts",
  "api/sellers/free-exam.ts",
  "api/sellers/exam-account.ts",
  "api/sellers/look.ts",
  "api/sellers/published/read-published.ts",
  "api/sellers/published/read-published.ts",
  "api/sellers/published/read-published.ts",
  "api/sellers/refund.ts",
  "api/sellers/run-exam.ts",
  "api/sellers/take-order.ts",
  "api/sellers/payment-fate.ts",
  "api/settlement-status/look-up.ts",
  "api/settlement-status/sell-statement.ts",
  "api/site/home-page.ts",
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
