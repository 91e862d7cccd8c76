import type { Certificate } from "../certificates/certificate.ts";
import { badgeUrl, certUrl, verifyUrl } from "../certificates/links.ts";
import { type Capability, PRODUCT_MENU, PRODUCTS } from "../certificates/products.ts";
import { VERIFIED_MEANS } from "../certificates/verification.ts";
import type { Address } from "../platform/wallet.ts";
import type { WebOrigin } from "../platform/web/web-origin.ts";
import { SELLER_VERIFIED_MEANS, sellerVerifyUrl } from "../sellers/published/verification.ts";

export const DEFAULT_LIMIT = 25;
export const MAX_LIMIT = 100;

/** A certificate's place on the board: by `issuedAt`, then by `id`. */
export type Position = Pick<Certificate, "id" | "issuedAt">;

/**
 * A reader's walk through the board. Certificates issued after `top` move no wallet during the walk, so no wallet is
 * missed or repeated, however many arrive.
 */
export interface Walk {
  /** The first row of the first page. */
  readonly top: Position;
  /** The last row of the previous page. */
  readonly after: Position;
}

/** A certified wallet with its newest current PASS (for the requested capability). */
export interface BoardRow extends Pick<Certificate, "id" | "product" | "level" | "issuedAt" | "validUntil"> {
  readonly wallet: Address;
  /** Every product the wallet currently passes. */
  readonly products: readonly string[];
}

/** A verified seller with its newest current PASS. */
export interface SellerRow extends Position {
  readonly origin: WebOrigin;
  /** Ends with a slash; `/` is the whole origin. */
  readonly prefix: string;
  readonly payTo: Address;
  readonly level: string;
  readonly validUntil: Date;
  /** How many of its requests pass. */
  readonly requests: number;
}

/** The capability of those who sell. */
export const SELLER = "seller" as const;

export interface BoardPage<Row extends Position = BoardRow> {
  /** Sellers have one alone. */
  readonly capability: Capability | null;
  readonly limit: number;
  readonly rows: readonly Row[];
  /** Null on the last page. */
  readonly next: Walk | null;
}

/** Builds a page of at most `limit` rows from up to one more than that. */
export function boardPage<Row extends Position>(
  asked: Pick<BoardPage, "capability" | "limit">,
  walk: Walk | null,
  read: readonly Row[],
) {
  const rows = read.slice(0, asked.limit);
  const [first] = rows;
  const last = rows.at(-1);
  const more = read.length > asked.limit && first !== undefined && last !== undefined;
  return { ...asked, rows, next: more ? { top: walk?.top ?? first, after: last } : null } satisfies BoardPage<Row>;
}

/** The capabilities these products prove, in menu order. */
export const capabilitiesOf = (products: readonly string[]): readonly Capability[] =>
  PRODUCT_MENU.filter((product) => products.includes(product)).map((product) => PRODUCTS[product].capability);

/** The certificate of a row. */
const certified = (row: Pick<BoardRow, "id" | "level" | "issuedAt" | "validUntil">, baseUrl: string) => ({
  level: row.level,
  issued_at: row.issuedAt.toISOString(),
  valid_until: row.validUntil.toISOString(),
  cert_url: certUrl(baseUrl, row),
  badge_url: badgeUrl(baseUrl, row),
});

/** The board as JSON. `nextUrl` is the next page's address; null on the last page. */
export function boardDocument({ capability, limit, rows }: BoardPage, baseUrl: string, nextUrl: string | null) {
  return {
    service: "Agent Payment Trust Service",
    certified_means: VERIFIED_MEANS,
    capability,
    limit,
    agents: rows.map((row) => ({
      wallet: row.wallet,
      capabilities: capabilitiesOf(row.products),
      product: row.product,
      ...certified(row, baseUrl),
      verify_url: verifyUrl(baseUrl, row.wallet),
    })),
    next: nextUrl,
  };
}

/** The board of sellers as JSON. */
export const sellerBoardDocument = (
  { limit, rows }: BoardPage<SellerRow>,
  baseUrl: string,
  nextUrl: string | null,
) => ({
  service: "Agent Payment Trust Service" as const,
  certified_means: SELLER_VERIFIED_MEANS,
  capability: SELLER,
  limit,
  sellers: rows.map((row) => ({
    origin: row.origin,
    path_prefix: row.prefix,
    pay_to: row.payTo,
    passing_requests: row.requests,
    ...certified(row, baseUrl),
    verify_url: sellerVerifyUrl(baseUrl, row),
  })),
  next: nextUrl,
});
