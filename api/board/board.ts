import {
  badgeUrl,
  type Capability,
  type Certificate,
  certUrl,
  PRODUCT_MENU,
  PRODUCTS,
  VERIFIED_MEANS,
  verifyUrl,
} from "../certificates/index.ts";
import type { Address } from "../platform/wallet.ts";
import type { WebOrigin } from "../platform/web/target.ts";
import { SELLER_VERIFIED_MEANS, sellerVerifyUrl } from "../sellers/index.ts";

export const DEFAULT_LIMIT = 25;
export const MAX_LIMIT = 100;

/** A certificate's position on the board, sorted by `issuedAt`, then by `id`. */
export type Position = Pick<Certificate, "id" | "issuedAt">;

/**
 * A reader's walk through the pages of the board. Certificates issued after `top` do not move wallets during the walk, so
 * no wallet is missed or repeated, even if many are issued.
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
  /** The number of its requests that pass. */
  readonly requests: number;
}

export const SELLER = "seller" as const;

export interface BoardPage<Row extends Position = BoardRow> {
  /** Null for any capability, and for sellers. */
  readonly capability: Capability | null;
  readonly limit: number;
  readonly rows: readonly Row[];
  /** Null on the last page. */
  readonly next: Walk | null;
}

/** Builds a page of at most `limit` rows. `read` has one more row if there is a next page. */
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

/** Returns the capabilities that these products prove, in menu order. */
export const capabilitiesOf = (products: readonly string[]): readonly Capability[] =>
  PRODUCT_MENU.filter((product) => products.includes(product)).map((product) => PRODUCTS[product].capability);

const certified = (row: Pick<BoardRow, "id" | "level" | "issuedAt" | "validUntil">, baseUrl: string) => ({
  level: row.level,
  issued_at: row.issuedAt.toISOString(),
  valid_until: row.validUntil.toISOString(),
  cert_url: certUrl(baseUrl, row),
  badge_url: badgeUrl(baseUrl, row),
});

/** Returns the board as JSON. `nextUrl` is null on the last page. */
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

const FORM = /^(\d{1,14})\.([0-9a-f]{16,32})\.(\d{1,14})\.([0-9a-f]{16,32})\.(\w+)$/;

/** Encodes a walk through a filtered board as an opaque cursor. */
export function encodeCursor({ top, after }: Walk, filter: string): string {
  const place = ({ id, issuedAt }: Position) => `${issuedAt.getTime()}.${id}`;
  return Buffer.from(`${place(top)}.${place(after)}.${filter}`).toString("base64url");
}

/** Parses a cursor. Returns null if this service cannot have issued it for this filter. */
export function parseCursor(text: string, filter: string): Walk | null {
  const [, topAt, topId = "", afterAt, afterId = "", own] =
    FORM.exec(Buffer.from(text, "base64url").toString("latin1")) ?? [];
  const walk = {
    top: { issuedAt: new Date(Number(topAt)), id: topId },
    after: { issuedAt: new Date(Number(afterAt)), id: afterId },
  };
  return own === filter && encodeCursor(walk, filter) === text ? walk : null;
}

/** A breakdown that covers fewer wallets than this is withheld. */
export const MINIMUM_WALLETS = 5;

/** The number of certificates, and of the distinct wallets that have them. */
export interface Count {
  readonly certificates: number;
  readonly wallets: number;
}

export const NONE: Count = { certificates: 0, wallets: 0 };

/** Whether a count covers no wallet, or enough of them. */
export const isPublic = ({ wallets }: Count): boolean => wallets === 0 || wallets >= MINIMUM_WALLETS;

/**
 * Returns which parts of a published total to withhold. If a part covers too few wallets, it is withheld together with all
 * parts that are zero and, if it would still be the only one, with the smallest other part. At least two parts are then
 * withheld, and any of them may be zero, so the total minus the published parts reveals none of them.
 * @param rest the unpublished remainder of the total
 */
export function withhold(parts: readonly Count[], rest: Count = NONE): readonly boolean[] {
  if ([...parts, rest].every(isPublic)) return parts.map(() => false);
  const hidden = parts.map((part) => part.wallets < MINIMUM_WALLETS);
  const others = parts
    .map((part, index) => ({ ...part, index }))
    .filter(({ index }) => hidden[index] === false)
    .toSorted((a, b) => a.wallets - b.wallets || a.certificates - b.certificates);
  const more = others.slice(0, Math.max(0, 2 - hidden.filter(Boolean).length));
  return hidden.map((one, index) => one || more.some((other) => other.index === index));
}
