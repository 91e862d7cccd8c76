import type { Sale } from "../../platform/http/route.ts";
import { NETWORKS } from "../../platform/networks.ts";
import type { Detected } from "../certificate.ts";
import type { Kind } from "./kind.ts";

/**
 * The facts that every settled payment proves: the gate accepts only the exact amount, to the quoted recipient, on the
 * quoted network, and sells only for payments that settled on the chain (SPEC.md, suite checks).
 */
export const settledFacts = ({ payment, version }: Pick<Sale<unknown>, "payment" | "version">): Detected => ({
  exact_amount: true,
  recipient_match: true,
  network_match: true,
  network: NETWORKS[payment.network].key,
  asset: "USDC",
  protocol_version: version,
});

export const basic: Kind<"basic"> = {
  product: "basic",
  testVersion: 1,
  price: 250_000n,
  summary: "Can this agent pay over x402?",
  description: "Basic payment test: pay this request over x402 and receive a public certificate of what settled.",
  steps: [
    "POST /test/basic without a payment and read the 402 challenge.",
    "Sign the USDC authorization it asks for and repeat the request with it.",
    "Receive the certificate: its page, its badge and what was detected.",
  ],
  judge: (sale) => ({ result: "pass", level: "Conformant", checks: { paid: "pass" }, detected: settledFacts(sale) }),
};
