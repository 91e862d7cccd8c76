import type { Context } from "hono";
import { Problem } from "../kernel/errors.ts";
import { inPath, inQuery, jsonOrPage } from "../kernel/output.ts";
import type { Route } from "../kernel/route.ts";
import { mixedCaseAddress } from "../kernel/schema.ts";
import { parseAddress } from "../kernel/wallet.ts";
import { page, wantsHtml } from "../layout/negotiate.ts";
import { CREDENTIAL, VERIFICATION } from "./certification-schemas.ts";
import type { Certification } from "./certify.ts";
import { renderVerification } from "./pages/verification-page.ts";

export interface VerificationRouteParts {
  readonly certification: Certification;
}

const WALLET = {
  name: "wallet",
  description: "The wallet's address, in upper, lower or mixed case.",
  schema: mixedCaseAddress,
};

/** What is on file about a wallet: as a record, as a page, and signed. */
export const verificationRoutes = (parts: VerificationRouteParts): readonly Route[] => [
  {
    method: "GET",
    path: "/verify",
    summary: "A wallet's record: certificates, capabilities, on-chain activity",
    parameters: [inQuery(WALLET)],
    output: jsonOrPage(VERIFICATION),
    problems: ["malformed_request"],
    handle: (c) => verify(c, parts),
  },
  {
    method: "GET",
    path: "/credential/:wallet",
    summary: "The same record as a signed credential that anyone can check offline",
    parameters: [inPath(WALLET)],
    output: { "application/json": CREDENTIAL, "application/vc": CREDENTIAL },
    problems: ["malformed_request"],
    handle: (c) => credential(c, parts),
  },
];

async function verify(c: Context, { certification }: VerificationRouteParts): Promise<Response> {
  const wallet = parseAddress(c.req.query("wallet"));
  if (wallet === null) {
    throw new Problem("malformed_request", {
      detail: "The query parameter wallet must be an address: 0x and 40 hex digits, like /verify?wallet=0x90F7…",
    });
  }
  const record = await certification.verification(wallet);
  return wantsHtml(c) ? page(c, renderVerification(record)) : c.json(record, 200, { vary: "Accept" });
}

/**
 * Signed afresh for each request, because the record can change at any time. The holder keeps the document; caches do
 * not.
 */
async function credential(c: Context, { certification }: VerificationRouteParts): Promise<Response> {
  const wallet = parseAddress(c.req.param("wallet"));
  if (wallet === null) {
    throw new Problem("malformed_request", {
      detail: "The path must end in an address: 0x and 40 hex digits, like /credential/0x90F7…",
    });
  }
  const named = /\bapplication\/vc\s*(,|;|$)/.test(c.req.header("accept") ?? "");
  return c.json(await certification.credential(wallet), 200, {
    "content-type": named ? "application/vc" : "application/json",
    "cache-control": "no-cache",
    vary: "Accept",
  });
}
