import escrow from "../../packages/escrow/package.json" with { type: "json" };
import mcp from "../../packages/mcp/package.json" with { type: "json" };
import sellerCheck from "../../packages/seller-check/package.json" with { type: "json" };
import verifier from "../../packages/verifier/package.json" with { type: "json" };

/** One of our npm packages, as its manifest describes it. */
export interface PublishedPackage {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  /** The Node versions it runs on. */
  readonly node: string;
  /** Its folder under `packages/`. */
  readonly folder: string;
}

interface Manifest extends Pick<PublishedPackage, "name" | "version" | "description"> {
  readonly engines: { readonly node: string };
}

const published = (folder: string, { name, version, description, engines }: Manifest): PublishedPackage => ({
  name,
  version,
  description,
  node: engines.node,
  folder,
});

export const VERIFIER = published("verifier", verifier);
export const ESCROW = published("escrow", escrow);
export const MCP = published("mcp", mcp);
const SELLER_CHECK = published("seller-check", sellerCheck);

/** The packages the service serves, so that installing them needs no registry. */
export const PACKAGES: readonly PublishedPackage[] = [VERIFIER, ESCROW, MCP, SELLER_CHECK];

/** The tarball's file name as npm writes it. */
export const tarballName = ({ name, version }: PublishedPackage): string => `${name}-${version}.tgz`;

/** What to give `npm install` and `npx` instead of a package name. */
export const packageUrl = (baseUrl: string, published: PublishedPackage): string =>
  `${baseUrl}/packages/${tarballName(published)}`;
