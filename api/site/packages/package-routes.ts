import type { Context } from "hono";
import { Problem } from "../../platform/http/errors.ts";
import { isHeld } from "../../platform/http/etag.ts";
import { inPath, json } from "../../platform/http/output.ts";
import type { Route } from "../../platform/http/route.ts";
import { PACKAGE_LIST, TARBALL_NAME } from "./package-schemas.ts";
import { PACKAGES, packageUrl, tarballName } from "./published.ts";
import type { Tarballs } from "./tarball.ts";

export interface PackageRouteParts {
  readonly tarballs: Tarballs;
  readonly baseUrl: string;
}

const FOR_A_YEAR = "public, max-age=31536000, immutable";
/** On a developer's machine, a version is rebuilt whenever its sources change. */
const EVERY_TIME = "no-cache";

/** Our npm packages, installable from the service itself. */
export const packageRoutes = (parts: PackageRouteParts): readonly Route[] => [
  {
    method: "GET",
    path: "/packages",
    summary: "The npm packages: verifier, escrow, MCP tools, exam for sellers",
    output: json(PACKAGE_LIST),
    handle: (c) => c.json({ packages: listing(parts) }, 200, { "cache-control": EVERY_TIME }),
  },
  {
    method: "GET",
    path: "/packages/:file",
    summary: "A package's npm tarball",
    parameters: [inPath({ name: "file", description: "The file name, as listed in /packages.", schema: TARBALL_NAME })],
    output: { "application/gzip": null },
    others: { 304: {} },
    problems: ["not_found"],
    handle: (c) => tarball(c, parts),
  },
];

const listing = ({ tarballs, baseUrl }: PackageRouteParts) =>
  PACKAGES.map((published) => {
    const { name, version, description, node } = published;
    const integrity = tarballs.get(tarballName(published))?.integrity ?? null;
    return { name, version, description, node, url: packageUrl(baseUrl, published), integrity };
  });

function tarball(c: Context, { tarballs, baseUrl }: PackageRouteParts): Response {
  const file = c.req.param("file") ?? "";
  if (!PACKAGES.some((published) => tarballName(published) === file))
    throw new Problem("not_found", {
      detail: `There is no package ${file.slice(0, 200)}; see ${baseUrl}/packages for the list.`,
    });
  const found = tarballs.get(file);
  if (found === undefined)
    throw new Problem("not_available", {
      detail: `${file} has not been built. The operator must run \`npm run packages\` and restart the service.`,
      headers: { "retry-after": "300" },
    });
  const headers = {
    etag: `"${found.integrity}"`,
    "content-type": "application/gzip",
    "cache-control": baseUrl.startsWith("https:") ? FOR_A_YEAR : EVERY_TIME,
  };
  return isHeld(c.req.header("if-none-match"), headers.etag)
    ? c.body(null, 304, headers)
    : c.body(found.bytes, 200, headers);
}
