import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { PACKAGES, tarballName, WHEEL } from "../api/platform/packages.ts";
import { TARBALLS } from "../api/site/packages/tarballs.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const FOLDERS = PACKAGES.map(({ folder }) => join("packages", folder));
/** The file with the digest of the tarballs' sources. */
const DIGEST = "built-from";
const call = promisify(execFile);

/** Whether a file in a package's folder is part of its sources. */
const isSource = (path: string): boolean => !/(^|\/)(dist|node_modules|__pycache__)(\/|$)/.test(relative(ROOT, path));

/**
 * Packs the npm packages that the service serves, unless their sources are unchanged. It builds in a copy, so that programs
 * can build concurrently. Returns whether it built anything.
 */
export async function buildPackages(into: string = TARBALLS): Promise<boolean> {
  const digest = await digestOfFiles(FOLDERS);
  if ((await builtFrom(into)) === digest) return false;
  await mkdir(into, { recursive: true });
  // The copy is inside the project, to use its compiler and types.
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

async function digestOfFiles(folders: readonly string[]): Promise<string> {
  const hash = createHash("sha256");
  const entries = await Promise.all(
    folders.map((folder) => readdir(join(ROOT, folder), { recursive: true, withFileTypes: true })),
  );
  const files = entries.flat().flatMap((entry) => (entry.isFile() ? [join(entry.parentPath, entry.name)] : []));
  // The lock file has the compiler's version.
  for (const path of [join(ROOT, "tsconfig.json"), join(ROOT, "package-lock.json"), ...files.filter(isSource).sort()])
    hash.update(`${relative(ROOT, path)}\0`).update(
      createHash("sha256")
        .update(await readFile(path))
        .digest(),
    );
  return hash.digest("hex");
}

/** Returns the digest of the sources of a folder's tarballs, or null if a tarball is missing. */
async function builtFrom(folder: string): Promise<string | null> {
  const present = await readdir(folder).catch(() => [] as string[]);
  if (![DIGEST, ...PACKAGES.map(tarballName)].every((name) => present.includes(name))) return null;
  return readFile(join(folder, DIGEST), "utf8");
}

const PYTHON_PACKAGE = join(ROOT, "packages", "python");
const PYTHONS = ["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10"];
/** The file with the digest of the wheel's sources. */
const WHEEL_DIGEST = "wheel-built-from";

/** Returns the name of a suitable Python with `venv`, or null. */
export async function recentPython(): Promise<string | null> {
  const check = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))";
  for (const name of PYTHONS) if ((await call(name, ["-c", check]).catch(() => null)) !== null) return name;
  return null;
}

/**
 * Builds the wheel of the Python package, unless its sources are unchanged.
 * @returns false if Python 3.10, or the package index with the build backend, is not available
 */
export async function buildWheel(into: string = TARBALLS): Promise<boolean> {
  const digest = await digestOfFiles(["packages/python"]);
  const isBuilt = (await readdir(into).catch(() => [] as string[])).includes(WHEEL);
  if (isBuilt && (await readFile(join(into, WHEEL_DIGEST), "utf8").catch(() => null)) === digest) return true;
  const python = await recentPython();
  if (python === null) return false;
  await mkdir(into, { recursive: true });
  const copy = await mkdtemp(join(into, "build-"));
  try {
    await cp(PYTHON_PACKAGE, join(copy, "source"), { recursive: true, filter: isSource });
    const quick = ["--quiet", "--disable-pip-version-check", "--retries=0", "--timeout=10"];
    await call(python, ["-m", "pip", "wheel", ...quick, "--no-deps", "--wheel-dir", copy, join(copy, "source")]);
    await rename(join(copy, WHEEL), join(into, WHEEL));
    await writeFile(join(into, WHEEL_DIGEST), digest);
    return true;
  } catch (error) {
    if (isIndexMissing(error)) return false;
    throw error;
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

/** Whether pip failed because it could not reach a package index. */
export const isIndexMissing = (error: unknown): boolean =>
  /No matching distribution|connection broken|NewConnectionError/i.test((error as { stderr?: string }).stderr ?? "");

/** Builds the packages. Returns the problem and its effect, or null if the tarballs exist. */
export async function packagesProblem(): Promise<string | null> {
  try {
    await buildPackages();
    await buildWheel();
    return null;
  } catch (error) {
    const { stderr, stdout, message } = error as { stderr?: string; stdout?: string; message: string };
    const output = [stdout, stderr].map((text) => text?.trim()).filter(Boolean);
    return `The npm packages could not be built, so the service cannot serve them: ${output.join("\n") || message}`;
  }
}

if (import.meta.main) {
  const problem = await packagesProblem();
  if (problem === null) {
    console.log(`The npm packages are in ${basename(TARBALLS)}/: ${PACKAGES.map(tarballName).join(", ")}`);
    console.log((await buildWheel()) ? `The wheel is there too: ${WHEEL}` : "The wheel needs Python 3.10 and PyPI.");
  } else console.error(problem);
  process.exitCode = problem === null ? 0 : 1;
}
