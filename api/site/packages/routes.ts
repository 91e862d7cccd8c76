import type { Context } from "hono";
import { z } from "zod";
import { inPath, isHeld, json } from "../../platform/http/answer.ts";
import { Problem } from "../../platform/http/errors.ts";
import type { Route } from "../../platform/http/route.ts";
import { PACKAGES, packageUrl, tarballName, WHEEL } from "../../platform/packages.ts";
import type { Tarballs } from "./tarballs.ts";

/** The response of `GET /packages`. */
const PACKAGE_LIST = z
  .object({
    packages: z.array(
      z.object({
        name: z.string(),
        version: z.string(),
        description: z.string(),
        node: z.string().meta({ description: "The Node versions it supports." }),
        url: z.string().meta({
          description:
            "The tarball: download it and pass the file to `npm install`, or pass the URL to `npx --allow-remote=root`.",
        }),
        integrity: z.string().nullable().meta({ description: "SHA-512 as lock files write it; null if not built." }),
      }),
    ),
  })
  .meta({ id: "PackageList" });

/** The file name of a tarball or of the wheel. */
const TARBALL_NAME = z.enum([...PACKAGES.map(tarballName), WHEEL]);

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
    summary: "A package's npm tarball, or the Python package's wheel",
    parameters: [inPath({ name: "file", description: "The file name, as listed in /packages.", schema: TARBALL_NAME })],
    output: { "application/gzip": null, "application/zip": null },
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
  if (file !== WHEEL && !PACKAGES.some((published) => tarballName(published) === file))
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
    "content-type": file === WHEEL ? "application/zip" : "application/gzip",
    "cache-control": baseUrl.startsWith("https:") ? FOR_A_YEAR : EVERY_TIME,
  };
  return isHeld(c.req.header("if-none-match"), headers.etag)
    ? c.body(null, 304, headers)
    : c.body(found.bytes, 200, headers);
}
