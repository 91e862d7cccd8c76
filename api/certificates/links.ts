import type { Certificate } from "./certificate.ts";
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
