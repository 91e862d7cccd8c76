import type { Context } from "hono";
import { z } from "zod";
import { prefers } from "../platform/http/accept.ts";
import { inPath, inQuery, jsonOrPage, optionalInQuery } from "../platform/http/answer.ts";
import { Problem } from "../platform/http/errors.ts";
import type { Route } from "../platform/http/route.ts";
import { walletText } from "../platform/http/schema.ts";
import { page, wantsHtml } from "../platform/page/page.ts";
import { readWallet } from "../platform/wallet.ts";
import type { Certification } from "./certify.ts";
import type { SharedAddresses, SharedRecord } from "./links.ts";
import { renderVerification } from "./pages/verification-page.ts";
import { CREDENTIAL, VERIFICATION } from "./schemas.ts";

export interface VerificationRouteParts {
  readonly certification: Certification;
  readonly shared: SharedAddresses;
}

const WALLET = {
  name: "wallet",
  description: "The wallet's address.",
  schema: walletText,
};

const ORIGIN = {
  name: "origin",
  description: "A seller's origin, like `https://shop.example`: exactly one of this and `wallet`.",
  schema: z.string(),
};

const PATH_PREFIX = {
  name: "path_prefix",
  description: "The part of the origin that the record is about, like `/shop/`; defaults to the whole, `/`.",
  schema: z.string(),
};

/** Returns the routes of the record of a wallet or of a seller's origin: as JSON, as a page, and signed. */
export const verificationRoutes = (parts: VerificationRouteParts): readonly Route[] => [
  {
    method: "GET",
    path: "/verify",
    summary: "The record of a wallet (certificates, capabilities, on-chain activity) or of a seller's origin",
    parameters: [
      optionalInQuery({ ...WALLET, description: `${WALLET.description} Exactly one of this and \`origin\`.` }),
      optionalInQuery(ORIGIN),
      optionalInQuery(PATH_PREFIX),
    ],
    output: jsonOrPage(z.union([VERIFICATION, parts.shared.schemas.verification])),
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
  {
    method: "GET",
    path: "/credential",
    summary: "The record of a seller's origin as a signed credential",
    parameters: [
      inQuery({ ...ORIGIN, description: "A seller's origin, like `https://shop.example`." }),
      optionalInQuery(PATH_PREFIX),
    ],
    output: {
      "application/json": parts.shared.schemas.credential,
      "application/vc": parts.shared.schemas.credential,
    },
    problems: ["malformed_request"],
    handle: (c) => originCredential(c, parts),
  },
];

async function verify(c: Context, { certification, shared }: VerificationRouteParts): Promise<Response> {
  const given = c.req.query("wallet");
  const [origin, second] = c.req.queries("origin") ?? [];
  if (second !== undefined)
    throw new Problem("malformed_request", { detail: "The query has origin more than once: give one." });
  if (origin !== undefined) {
    if (given !== undefined)
      throw new Problem("malformed_request", {
        detail: "The query has both wallet and origin: give one of them, the paying wallet or the seller's origin.",
      });
    return sharedRecord(c, await shared.verification(origin, c.req.query("path_prefix")));
  }
  const read = readWallet(given);
  if ("malformed" in read) {
    throw new Problem("malformed_request", {
      detail:
        given === undefined
          ? "Give exactly one query parameter: wallet, like /verify?wallet=0x90F7…, or origin, like /verify?origin=https://shop.example"
          : `The query parameter wallet must be an address, like /verify?wallet=0x90F7…: ${read.malformed}.`,
    });
  }
  const record = await certification.verification(read.wallet);
  if (wantsHtml(c)) return page(c, renderVerification(record));
  // Setting several headers through the context would cost an extra object.
  return new Response(JSON.stringify(record), { headers: { "content-type": "application/json", vary: "Accept" } });
}

/** Returns a record of another feature. */
export function sharedRecord(c: Context, { document, page: render, isListed }: SharedRecord): Response {
  if (!isListed) c.header("x-robots-tag", "noindex");
  return wantsHtml(c) ? page(c, render()) : c.json(document(), 200, { vary: "Accept" });
}

async function credential(c: Context, { certification }: VerificationRouteParts): Promise<Response> {
  const read = readWallet(c.req.param("wallet"));
  if ("malformed" in read)
    throw new Problem("malformed_request", {
      detail: `The path must end in an address, like /credential/0x90F7…: ${read.malformed}.`,
    });
  return signed(c, await certification.credential(read.wallet));
}

async function originCredential(c: Context, { shared }: VerificationRouteParts): Promise<Response> {
  const origin = c.req.query("origin");
  if (origin === undefined)
    throw new Problem("malformed_request", {
      detail:
        "Give the query parameter origin, like /credential?origin=https://shop.example; a wallet's is at /credential/0x90F7…",
    });
  return signed(c, await shared.credential(origin, c.req.query("path_prefix")));
}

/**
 * Signed again for each request, because the record can change at any time. The holder keeps the document, but caches
 * do not.
 */
function signed(c: Context, document: object): Response {
  const named = prefers(c.req.header("accept"), "application/vc", "application/json");
  return c.json(document, 200, {
    "content-type": named ? "application/vc" : "application/json",
    "cache-control": "no-cache",
    vary: "Accept",
  });
}
