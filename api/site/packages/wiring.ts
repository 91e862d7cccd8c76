import { fileURLToPath } from "node:url";
import { readTarballs } from "./tarballs.ts";
import { PACKAGES, tarballName } from "./published.ts";
import type { Tarballs } from "./tarball.ts";

/** Where `npm run packages` puts the tarballs that the service serves. */
export const TARBALLS = fileURLToPath(new URL("../../tarballs/", import.meta.url));

/** What can be installed from the service. It starts without any and says so. */
export async function wirePackages(log: { warn(facts: object, message: string): void }): Promise<Tarballs> {
  const tarballs = await readTarballs(TARBALLS);
  const missing = PACKAGES.map(tarballName).filter((name) => !tarballs.has(name));
  if (missing.length > 0)
    log.warn({ missing, folder: TARBALLS }, "the npm packages are not built: run npm run packages");
  return tarballs;
}
