import type { z } from "zod";
import type { Certificate } from "./certificate.ts";
import type { Preview } from "./og-image.ts";
import { PRODUCTS } from "./products.ts";

type Id = Pick<Certificate, "id">;

/** The public page of a certificate. `baseUrl` has no trailing slash, here and below. */
export const certUrl = (baseUrl: string, { id }: Id): string => `${baseUrl}/cert/${encodeURIComponent(id)}`;

/** The same record as JSON, for readers that cannot set an `Accept` header. */
export const certJsonUrl = (baseUrl: string, certificate: Id): string => `${certUrl(baseUrl, certificate)}?format=json`;

/** The certificate as a credential that never changes, where one was published. */
export const credentialUrl = (baseUrl: string, certificate: Id): string =>
  `${certUrl(baseUrl, certificate)}/credential`;

/** Every request and answer of a seller's exam. */
export const evidenceUrl = (baseUrl: string, certificate: Id): string => `${certUrl(baseUrl, certificate)}/evidence`;

/** The picture for link previews. */
export const certImageUrl = (baseUrl: string, certificate: Id): string => `${certUrl(baseUrl, certificate)}/og.png`;

export const badgeUrl = (baseUrl: string, { id }: Id): string => `${baseUrl}/badge/${encodeURIComponent(id)}.svg`;

/** Markdown for a README: the badge, linked to the certificate. */
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

/** What another feature has at the addresses of certificates, and of the records of wallets. */
export interface SharedAddresses {
  readonly schemas: Readonly<Record<"record" | "verification" | "credential", z.ZodType>>;
  /** Null for an id that is none of its own. */
  certificate(id: string): Promise<SharedRecord | null>;
  /** A badge as SVG; null if there is none. */
  badge(id: string): Promise<string | null>;
  /** What its picture shows; null for an id without one. */
  preview(id: string): Promise<Preview | null>;
  /** @param pathPrefix `/` if it is undefined @throws Problem for what is no origin, or no path prefix */
  verification(origin: string, pathPrefix: string | undefined): Promise<SharedRecord>;
  /** Likewise. */
  credential(origin: string, pathPrefix: string | undefined): Promise<object>;
}
