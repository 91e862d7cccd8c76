import { z } from "zod";
import { PACKAGES, tarballName } from "./published.ts";

/** The answer of `GET /packages`. */
export const PACKAGE_LIST = z
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

/** The last part of a tarball's path. */
export const TARBALL_NAME = z.enum(PACKAGES.map(tarballName));
