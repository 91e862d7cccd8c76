import type { z } from "zod";
import type { Certificate } from "./certificate.ts";
import type { Preview } from "./og-image.ts";
import { PRODUCTS } from "./products.ts";

type Id = Pick<Certificate, "id">;

/** Returns the URL of a certificate's public page. `baseUrl` has no trailing slash, here and below. */
export const certUrl = (baseUrl: string, { id }: Id): string => `${baseUrl}/cert/${encodeURIComponent(id)}`;

/** Returns the URL of the same record as JSON, for readers that cannot set an `Accept` header. */
export const certJsonUrl = (baseUrl: string, certificate: Id): string => `${certUrl(baseUrl, certificate)}?format=json`;

/** Returns the URL of the certificate as a credential that never changes, if one was published. */
export const credentialUrl = (baseUrl: string, certificate: Id): string =>
  `${certUrl(baseUrl, certificate)}/credential`;

/** Returns the URL of every request and answer of a seller's exam. */
export const evidenceUrl = (baseUrl: string, certificate: Id): string => `${certUrl(baseUrl, certificate)}/evidence`;

export const certImageUrl = (baseUrl: string, certificate: Id): string => `${certUrl(baseUrl, certificate)}/og.png`;

export const badgeUrl = (baseUrl: string, { id }: Id): string => `${baseUrl}/badge/${encodeURIComponent(id)}.svg`;

/** Returns Markdown for a README: the badge, linked to the certificate. */
export const badgeMarkdown = (baseUrl: string, certificate: Pick<Certificate, "id" | "product">): string =>
  `[![${PRODUCTS[certificate.product].badge}](${badgeUrl(baseUrl, certificate)})](${certUrl(baseUrl, certificate)})`;

export const verifyUrl = (baseUrl: string, wallet: string): string =>
  `${baseUrl}/verify?wallet=${encodeURIComponent(wallet)}`;

/** A record of another feature, as a document and as a page. */
export interface SharedRecord {
  readonly document: () => object;
  readonly page: () => string;
  /** Whether search engines may list the page. */
  readonly isListed: boolean;
}

/** Another feature's records at the URLs of certificates and of wallets' records. */
export interface SharedAddresses {
  readonly schemas: Readonly<Record<"record" | "verification" | "credential", z.ZodType>>;
  /** Returns null for an ID that does not belong to the feature. */
  certificate(id: string): Promise<SharedRecord | null>;
  /** Returns a badge as SVG, or null if there is none. */
  badge(id: string): Promise<string | null>;
  /** Returns the contents of the certificate's picture, or null for an ID without one. */
  preview(id: string): Promise<Preview | null>;
  /**
   * @param pathPrefix `/` if undefined
   * @throws Problem if the origin or the path prefix is invalid
   */
  verification(origin: string, pathPrefix: string | undefined): Promise<SharedRecord>;
  credential(origin: string, pathPrefix: string | undefined): Promise<object>;
}
