import escrow from "../../packages/escrow/package.json" with { type: "json" };
import gate from "../../packages/gate/package.json" with { type: "json" };
import mcp from "../../packages/mcp/package.json" with { type: "json" };
import replayable from "../../packages/replayable/package.json" with { type: "json" };
import sellerCheck from "../../packages/seller-check/package.json" with { type: "json" };
import verifier from "../../packages/verifier/package.json" with { type: "json" };
import { VERSION } from "./about.ts";

/** One of our npm packages, as its manifest describes it. */
export interface PublishedPackage {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  /** The supported Node versions. */
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
export const GATE = published("gate", gate);
export const REPLAYABLE = published("replayable", replayable);
export const SELLER_CHECK = published("seller-check", sellerCheck);

/** The packages the service serves, so that installing them needs no registry. */
export const PACKAGES: readonly PublishedPackage[] = [VERIFIER, GATE, ESCROW, MCP, SELLER_CHECK, REPLAYABLE];

/** The wheel of `packages/python`, which needs Python to build. */
export const WHEEL = `agent_payment_trust-${VERSION}-py3-none-any.whl`;

/** Returns the tarball's file name as npm writes it. */
export const tarballName = ({ name, version }: PublishedPackage): string => `${name}-${version}.tgz`;

export const packageUrl = (baseUrl: string, published: PublishedPackage): string =>
  `${baseUrl}/packages/${tarballName(published)}`;

/**
 * Returns the arguments of `npx` that run a package's program. Since version 12, npm fetches a URL only if that is
 * allowed.
 */
export const npxArguments = (baseUrl: string, published: PublishedPackage): readonly string[] => [
  "-y",
  "--allow-remote=root",
  packageUrl(baseUrl, published),
];

export const npxCommand = (baseUrl: string, published: PublishedPackage): string =>
  ["npx", ...npxArguments(baseUrl, published)].join(" ");

/**
 * Returns commands that install packages of ours, and others by name. They install the downloaded files, because npm 12
 * refuses a dependency with a URL again in each later `npm install` and `npm ci`.
 */
export const installCommands = (
  baseUrl: string,
  packages: readonly PublishedPackage[],
  others: readonly string[] = [],
): string =>
  [
    ...packages.map((published) => `curl -fO ${packageUrl(baseUrl, published)}`),
    `npm install ${[...packages.map((published) => `./${tarballName(published)}`), ...others].join(" \\\n  ")}`,
  ].join("\n");
