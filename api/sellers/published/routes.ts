import type { Context } from "hono";
import { inPath, json, jsonOrPage } from "../../platform/http/answer.ts";
import { Problem } from "../../platform/http/errors.ts";
import type { Route } from "../../platform/http/route.ts";
import { walletText } from "../../platform/http/schema.ts";
import { page, wantsHtml } from "../../platform/page/page.ts";
import { readWallet } from "../../platform/wallet.ts";
import { examId } from "../schemas.ts";
import type { Published } from "./read-published.ts";
import { EVIDENCE, PAYEE_EXAMS } from "./schemas.ts";
import { renderPayee } from "./verification-page.ts";

export interface PublishedRouteParts {
  readonly sellers: Published;
  /** No trailing slash. */
  readonly baseUrl: string;
}

/** The routes that only exams have. `sellerAddresses` has the URLs that they share with certificates. */
export const publishedRoutes = (parts: PublishedRouteParts): readonly Route[] => [
  {
    method: "GET",
    path: "/cert/:id/evidence",
    summary: "Every request and answer of a seller's exam, and what the chain showed, byte for byte as hashed",
    parameters: [inPath({ name: "id", description: "The certificate's id.", schema: examId })],
    output: json(EVIDENCE),
    problems: ["not_found", "evidence_removed"],
    handle: (c) => evidence(c, parts),
  },
  {
    method: "GET",
    path: "/payee/:wallet",
    summary: "Exams of sellers that are paid at the wallet: facts that do not affect its score",
    parameters: [inPath({ name: "wallet", description: "The payee's address.", schema: walletText })],
    output: jsonOrPage(PAYEE_EXAMS),
    problems: ["malformed_request"],
    handle: (c) => payee(c, parts),
  },
];

async function evidence(c: Context, { sellers }: PublishedRouteParts): Promise<Response> {
  const id = c.req.param("id") ?? "";
  const [text, found] = await Promise.all([sellers.evidence(id), sellers.exam(id)]);
  const { removal = null, result = null } = found?.exam ?? {};
  if (removal !== null)
    throw new Problem("evidence_removed", {
      detail: `The evidence of exam ${id} was removed on ${removal.at.toISOString().slice(0, 10)}: ${removal.reason} Its SHA-256 was ${result?.evidenceSha256}; the record and its log entry stay.`,
    });
  if (text === null) throw new Problem("not_found", { detail: `There is no evidence of an exam ${id.slice(0, 40)}.` });
  return c.body(text, 200, {
    "content-type": "application/json",
    "cache-control": "public, max-age=3600",
    "x-robots-tag": "noindex",
  });
}

async function payee(c: Context, { sellers, baseUrl }: PublishedRouteParts): Promise<Response> {
  const read = readWallet(c.req.param("wallet"));
  if ("malformed" in read)
    throw new Problem("malformed_request", { detail: `The end of the path: ${read.malformed}.` });
  const exams = await sellers.payee(read.wallet);
  return wantsHtml(c) ? page(c, renderPayee(exams, baseUrl)) : c.json(exams, 200, { vary: "Accept" });
}
