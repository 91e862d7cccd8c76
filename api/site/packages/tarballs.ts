import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { PACKAGES, tarballName } from "./published.ts";
import type { Tarball, Tarballs } from "./tarball.ts";

/** The packages' tarballs in a folder, skipping those not built yet. */
export async function readTarballs(folder: string): Promise<Tarballs> {
  const read = PACKAGES.map(tarballName).map(async (name) => [name, await readTarball(join(folder, name))] as const);
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
