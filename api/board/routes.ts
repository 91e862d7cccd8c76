import type { Context } from "hono";
import { z } from "zod";
import type { Capability } from "../certificates/index.ts";
import { etagOf, isHeld, jsonOrPage, optionalInQuery } from "../platform/http/answer.ts";
import { Problem } from "../platform/http/errors.ts";
import type { Route } from "../platform/http/route.ts";
import { page, wantsHtml } from "../platform/page/page.ts";
import {
  boardDocument,
  DEFAULT_LIMIT,
  encodeCursor,
  MAX_LIMIT,
  parseCursor,
  SELLER,
  sellerBoardDocument,
  type Walk,
} from "./board.ts";
import { renderBoard, renderSellerBoard } from "./board-page.ts";
import type { Board } from "./read-board.ts";
import { BOARD, limit, listed, SELLER_BOARD, STATISTICS } from "./schemas.ts";
import { statisticsDocument } from "./statistics.ts";
import { renderStatistics } from "./statistics-page.ts";

export interface BoardRouteParts {
  readonly board: Board;
  readonly baseUrl: string;
}

const NOT_MODIFIED = { 304: {} };
const BOARD_MAX_AGE_SECONDS = 15;
const STATISTICS_MAX_AGE_SECONDS = 60;

export const boardRoutes = (parts: BoardRouteParts): readonly Route[] => [
  {
    method: "GET",
    path: "/board",
    summary: "Currently certified agents, or sellers, newest first",
    parameters: [
      optionalInQuery({
        name: "capability",
        description: "Only agents with this capability, or `seller` for certified sellers.",
        schema: listed,
      }),
      optionalInQuery({
        name: "limit",
        description: `Entries per page. The default is ${DEFAULT_LIMIT}.`,
        schema: limit,
      }),
      optionalInQuery({ name: "cursor", description: "Taken from the previous page's `next`.", schema: z.string() }),
    ],
    output: jsonOrPage(z.union([BOARD, SELLER_BOARD])),
    others: NOT_MODIFIED,
    problems: ["malformed_request"],
    handle: (c) => certified(c, parts),
  },
  {
    method: "GET",
    path: "/stats",
    summary: "Anonymous totals: certificates, certified agents, payments",
    output: jsonOrPage(STATISTICS),
    others: NOT_MODIFIED,
    handle: (c) => totals(c, parts),
  },
];

interface Asked {
  readonly capability: Capability | typeof SELLER | null;
  readonly limit: number;
  /** Null for the first page. */
  readonly walk: Walk | null;
}

async function certified(c: Context, { board, baseUrl }: BoardRouteParts): Promise<Response> {
  const asked = parseQuery(c);
  const { capability, walk } = asked;
  const context = (next: Walk | null) => {
    const nextUrl = next && address(c, baseUrl, { ...asked, walk: next });
    if (nextUrl !== null) c.header("link", `<${nextUrl}>; rel="next"`);
    return { baseUrl, first: walk === null, nextUrl, jsonUrl: address(c, baseUrl, { ...asked, format: "json" }) };
  };
  if (capability === SELLER) {
    const found = await board.sellers(asked.limit, walk);
    const shown = context(found.next);
    const render = wantsHtml(c) ? renderSellerBoard(found, shown) : sellerBoardDocument(found, baseUrl, shown.nextUrl);
    return answer(c, render, BOARD_MAX_AGE_SECONDS);
  }
  const found = await board.page({ capability, limit: asked.limit }, walk);
  const shown = context(found.next);
  return answer(
    c,
    wantsHtml(c) ? renderBoard(found, shown) : boardDocument(found, baseUrl, shown.nextUrl),
    BOARD_MAX_AGE_SECONDS,
  );
}

async function totals(c: Context, { board, baseUrl }: BoardRouteParts): Promise<Response> {
  const statistics = await board.statistics();
  const shown = wantsHtml(c) ? renderStatistics(statistics, baseUrl) : statisticsDocument(statistics);
  return answer(c, shown, STATISTICS_MAX_AGE_SECONDS);
}

function parseQuery(c: Context): Asked {
  const { limit = String(DEFAULT_LIMIT), capability, cursor } = c.req.query();
  if (!/^[1-9]\d{0,2}$/.test(limit) || Number(limit) > MAX_LIMIT)
    throw malformed(`The query parameter limit must be a whole number from 1 to ${MAX_LIMIT}.`);
  const known = capability === undefined ? null : listed.options.find((name) => name === capability);
  if (known === undefined)
    throw malformed(`The query parameter capability must be one of ${listed.options.join(", ")}.`);
  const walk = cursor === undefined ? null : parseCursor(cursor, known ?? EVERY_TEST);
  if (cursor !== undefined && walk === null)
    throw malformed("The query parameter cursor must come from `next` on a page with the same capability.");
  return { capability: known, limit: Number(limit), walk };
}

const EVERY_TEST = "any";
const malformed = (detail: string) => new Problem("malformed_request", { detail });

/** Returns the absolute URL of a board page, in the requested format. */
function address(
  c: Context,
  baseUrl: string,
  { capability, limit, walk, format = c.req.query("format") }: Asked & { readonly format?: string },
): string {
  const query = new URLSearchParams({
    ...(capability === null ? {} : { capability }),
    ...(limit === DEFAULT_LIMIT ? {} : { limit: String(limit) }),
    ...(walk === null ? {} : { cursor: encodeCursor(walk, capability ?? EVERY_TEST) }),
    ...(format === "json" ? { format } : {}),
  });
  return query.size === 0 ? `${baseUrl}/board` : `${baseUrl}/board?${query}`;
}

/** Sends a page (text) or a document that caches may store for a while and then revalidate. */
function answer(c: Context, shown: string | object, maxAgeSeconds: number): Response {
  const body = typeof shown === "string" ? shown : JSON.stringify(shown);
  const etag = etagOf(body);
  c.header("etag", etag);
  c.header("cache-control", `public, max-age=${maxAgeSeconds}`);
  if (isHeld(c.req.header("if-none-match"), etag)) return c.body(null, 304, { vary: "Accept" });
  if (typeof shown === "string") return page(c, body);
  return c.body(body, 200, { "content-type": "application/json", vary: "Accept" });
}
