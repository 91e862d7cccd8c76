import type { z } from "zod";
import type { Preview } from "./og-image.ts";

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
