import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { PACKAGES, tarballName } from "../api/platform/packages.ts";
import { TARBALLS } from "../api/site/packages/tarballs.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const FOLDERS = PACKAGES.map(({ folder }) => join("packages", folder));
/** What the tarballs were last built from. */
const DIGEST = "built-from";
const call = promisify(execFile);

/** Whether a file of a package's folder goes into its build. */
const isSource = (path: string): boolean => !/(^|\/)(dist|node_modules)(\/|$)/.test(relative(ROOT, path));

/**
 * Packs the npm packages the service serves, unless their sources are unchanged. It builds in a copy, so that several
 * programs may do so at once. Returns whether there was anything to do.
 */
export async function buildPackages(into: string = TARBALLS): Promise<boolean> {
  const digest = await digestOfSources();
  if ((await builtFrom(into)) === digest) return false;
  await mkdir(into, { recursive: true });
  // Inside the project, whose compiler and types it uses.
  await mkdir(TARBALLS, { recursive: true });
  const copy = await mkdtemp(join(TARBALLS, "build-"));
  try {
    for (const name of ["tsconfig.json", ...FOLDERS])
      await cp(join(ROOT, name), join(copy, name), { recursive: true, filter: isSource });
    await call("npm", ["pack", "--loglevel=error", ...FOLDERS.map((folder) => `./${folder}`)], { cwd: copy });
    for (const name of PACKAGES.map(tarballName)) await rename(join(copy, name), join(into, name));
    await writeFile(join(into, DIGEST), digest);
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
  return true;
}

async function digestOfSources(): Promise<string> {
  const hash = createHash("sha256");
  const entries = await Promise.all(
    FOLDERS.map((folder) => readdir(join(ROOT, folder), { recursive: true, withFileTypes: true })),
  );
  const files = entries.flat().flatMap((entry) => (entry.isFile() ? [join(entry.parentPath, entry.name)] : []));
  // The compiler's version is in the lock file.
  for (const path of [join(ROOT, "tsconfig.json"), join(ROOT, "package-lock.json"), ...files.filter(isSource).sort()])
    hash.update(`${relative(ROOT, path)}\0`).update(
      createHash("sha256")
        .update(await readFile(path))
        .digest(),
    );
  return hash.digest("hex");
}

/** The digest that all tarballs of a folder were built from; null if one of them is missing. */
async function builtFrom(folder: string): Promise<string | null> {
  const present = await readdir(folder).catch(() => [] as string[]);
  if (![DIGEST, ...PACKAGES.map(tarballName)].every((name) => present.includes(name))) return null;
  return readFile(join(folder, DIGEST), "utf8");
}

/** What went wrong, and what it means; null if the tarballs exist. */
export async function packagesProblem(): Promise<string | null> {
  try {
    await buildPackages();
    return null;
  } catch (error) {
    const { stderr, stdout, message } = error as { stderr?: string; stdout?: string; message: string };
    const said = [stdout, stderr].map((text) => text?.trim()).filter(Boolean);
    return `The npm packages could not be built, so the service cannot serve them: ${said.join("\n") || message}`;
  }
}

if (import.meta.main) {
  const problem = await packagesProblem();
  if (problem === null)
    console.log(`The npm packages are in ${basename(TARBALLS)}/: ${PACKAGES.map(tarballName).join(", ")}`);
  else console.error(problem);
  process.exitCode = problem === null ? 0 : 1;
}
