import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { PACKAGES, tarballName } from "../../../api/platform/packages.ts";
import { TARBALLS } from "../../../api/site/packages/tarballs.ts";

/** Puts the tarball of one of our packages into a folder, as the service serves it. */
export async function packInto(home: string, folder: "escrow" | "mcp" | "verifier"): Promise<void> {
  const published = PACKAGES.find((one) => one.folder === folder);
  if (published === undefined) throw new Error(`${folder} is not served.`);
  await copyFile(join(TARBALLS, tarballName(published)), join(home, tarballName(published)));
}
