import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { PACKAGES, tarballName, WHEEL } from "../../platform/packages.ts";

/** Reads the packages' tarballs and the wheel from a folder. Files that are not built yet are left out. */
export async function readTarballs(folder: string): Promise<Tarballs> {
  const names = [...PACKAGES.map(tarballName), WHEEL];
  const read = names.map(async (name) => [name, await readTarball(join(folder, name))] as const);
  return new Map((await Promise.all(read)).flatMap(([name, tarball]) => (tarball === null ? [] : [[name, tarball]])));
}

async function readTarball(path: string): Promise<Tarball | null> {
  try {
    const bytes = new Uint8Array(await readFile(path));
    return { bytes, integrity: `sha512-${createHash("sha512").update(bytes).digest("base64")}` };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

export interface Tarball {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Hash of the bytes in lock file form: `sha512-` and base64. */
  readonly integrity: string;
}

/** The tarballs that are built, by file name. */
export type Tarballs = ReadonlyMap<string, Tarball>;

/** The folder that `npm run packages` writes to and the service serves from. */
export const TARBALLS = fileURLToPath(new URL("../../../tarballs/", import.meta.url));

/** Opens the packages that the service hosts. A missing one is logged, and does not prevent the start. */
export async function openTarballs(log: { warn(facts: object, message: string): void }): Promise<Tarballs> {
  const tarballs = await readTarballs(TARBALLS);
  const missing = PACKAGES.map(tarballName).filter((name) => !tarballs.has(name));
  if (missing.length > 0)
    log.warn({ missing, folder: TARBALLS }, "the npm packages are not built: run npm run packages");
  return tarballs;
}
