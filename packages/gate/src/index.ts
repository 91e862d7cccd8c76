import type { VerifyContext } from "@x402/core/server";
import { parseRequirements, type Requirement } from "../../verifier/src/requirement.ts";
import { gated, type HttpServer, type Judgment, refused } from "./gated.ts";
import { lookUp, type WalletLookup } from "./look-up.ts";
import { type Address, payerOf } from "./payer.ts";

export type { Requirement } from "../../verifier/src/requirement.ts";
export type { HttpServer } from "./gated.ts";

export interface GateOptions {
  /** The origin of the Agent Payment Trust Service, such as `https://trust.example`. */
  readonly service: string;
  /**
   * The tests that a wallet must have passed, such as `can_pay` or `["can_pay", "retry_safety"]`. Each wallet must also
   * be verified, with a current PASS and no current FAIL; `verified` requires only this.
   */
  readonly require?: Requirement | readonly Requirement[];
  /** Reports a lookup that failed; `console.error` by default. */
  readonly log?: (message: string, cause: unknown) => void;
}

/** Puts the gate before the paid routes of a stock `x402HTTPResourceServer`, which it returns. */
export type Gate = <S extends HttpServer>(httpServer: S) => S;

/**
 * Makes a stock x402 server sell to verified wallets only:
 * `paymentMiddlewareFromHTTPServer(verifiedOnly({ service })(new x402HTTPResourceServer(server, routes)))`, and
 * `withX402FromHTTPServer` in Next. Any other wallet gets a 403 with the service's reasons, or a 503 while the service
 * is unavailable, and is not charged.
 * @throws Error for a `service` that is not a URL, and for an unknown requirement
 */
export function verifiedOnly({ service, require = "verified", log = console.error }: GateOptions): Gate {
  if (!URL.canParse(service)) throw new Error(`service is not a URL: ${service}`);
  const base = service.replace(/\/+$/, "");
  const required = [...new Set<Requirement>(["verified", ...parseRequirements([require].flat().join(","))])];
  return (httpServer) => gated(httpServer, judge);

  async function judge({ paymentPayload, requirements }: VerifyContext): Promise<Judgment> {
    let wallet: Address;
    try {
      wallet = payerOf(paymentPayload.payload, requirements);
    } catch (cause) {
      return refused(403, `${(cause as Error).message}.`);
    }
    try {
      const finding = await lookUp(base, wallet, { required, network: requirements.network });
      return finding.missing.length === 0 ? { type: "admitted", wallet } : notAdmitted(wallet, finding);
    } catch (cause) {
      log("A wallet could not be looked up.", cause);
      return refused(503, "The wallet could not be looked up. Send the same payment again.", { wallet });
    }
  }
}

function notAdmitted(wallet: Address, { missing, reasons, howToTest }: WalletLookup): Judgment {
  const lacking = missing.filter((name) => name !== "verified");
  const why = missing.includes("verified") ? "is not verified" : `has no current PASS for ${lacking.join(", ")}`;
  return refused(403, `Wallet ${wallet} ${why}.`, { wallet, missing, reasons, how_to_test: howToTest });
}
