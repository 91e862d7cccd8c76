import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readFile, readlink, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { WHEEL } from "../../../api/platform/packages.ts";
import { TARBALLS } from "../../../api/site/packages/tarballs.ts";
import { buildWheel, isIndexMissing, recentPython } from "../../../scripts/packages.ts";
import { isAlive } from "../alive.ts";

const call = promisify(execFile);
const CONSTRAINTS = fileURLToPath(new URL("../../../packages/python/constraints.txt", import.meta.url));
const CACHE = fileURLToPath(new URL("../../../node_modules/.cache/python", import.meta.url));
/** The wheels of other parties. */
const WHEELS = join(CACHE, "wheels");
/** The packages that the tests' programs import. */
const TESTED = [
  `${join(TARBALLS, WHEEL)}[gate,escrow]`,
  "x402[evm,requests,httpx]",
  "fastapi",
  "uvicorn",
  "flask[async]",
  "jwcrypto",
  "psycopg[binary,pool]",
];
/** Everything that the tests and the documentation's programs install. */
const REQUIREMENTS = [...TESTED, "langchain-mcp-adapters"];
/** Needs an older version of a package than the constraints. */
const UNCONSTRAINED = "x402[evm,httpx,extensions]";

/**
 * Builds the wheel, and returns the environment in which pip installs the tested versions from a local folder. The
 * folder is filled once, because pip needs most of its time to resolve them on the package index. Returns null and prints
 * a line if Python 3.10, its `venv`, or the index is missing.
 */
export async function pipEnvironment(): Promise<Readonly<Record<string, string>> | null> {
  const python = await recentPython();
  if (python === null) return skipped("Python 3.10 or newer with venv is not installed");
  if (!(await buildWheel())) return skipped("the wheel cannot be built without the package index");
  const constraints = await readFile(CONSTRAINTS, "utf8");
  try {
    await makeOnce(WHEELS, [await versionOf(python), ...REQUIREMENTS, UNCONSTRAINED, constraints], async () => {
      const wheel = ["-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--wheel-dir", WHEELS];
      await call(python, [...wheel, "--constraint", CONSTRAINTS, ...REQUIREMENTS]);
      await call(python, [...wheel, UNCONSTRAINED]);
      // Ours is installed by its URL.
      await rm(join(WHEELS, WHEEL), { force: true });
    });
  } catch (error) {
    if (!isIndexMissing(error)) throw error;
    return skipped("the package index cannot be reached");
  }
  // pip reads PIP_NO_COMPILE inverted: "no" is --no-compile.
  return { PIP_NO_INDEX: "1", PIP_FIND_LINKS: WHEELS, PIP_NO_COMPILE: "no", PIP_DISABLE_PIP_VERSION_CHECK: "1" };
}

/**
 * The folder of a virtual environment with the wheel, its extras, and everything that the tests' programs need. All
 * files of a run share it. Returns null like `pipEnvironment`.
 */
export async function sharedVenv(): Promise<string | null> {
  const pip = await pipEnvironment();
  const python = await recentPython();
  if (pip === null || python === null) return null;
  const folder = join(CACHE, "venv");
  const wheel = await readFile(join(TARBALLS, WHEEL), "base64");
  const key = [await versionOf(python), ...TESTED, await readFile(CONSTRAINTS, "utf8"), wheel];
  await makeOnce(folder, key, () => makeVenv(folder, TESTED));
  return folder;
}

/** Makes a virtual environment with packages, from the folder that `pipEnvironment` has filled. */
export async function makeVenv(folder: string, packages: readonly string[]): Promise<void> {
  const env = { ...process.env, ...(await pipEnvironment()) };
  await newVirtualEnvironment(folder);
  await call(join(folder, "bin/pip"), ["install", "--quiet", ...packages], { env });
}

/** Makes a virtual environment whose pip is the interpreter's own. Unpacking another one takes Python three seconds. */
export async function newVirtualEnvironment(folder: string): Promise<void> {
  const python = (await recentPython()) ?? "python3";
  await call(python, ["-m", "venv", "--without-pip", folder]);
  const { stdout: own } = await call(python, ["-c", "import sys; print(sys.executable)"]);
  const pip = `#!/bin/sh\nexec ${own.trim()} -m pip --python ${folder}/bin/python "$@"\n`;
  await writeFile(join(folder, "bin/pip"), pip, { mode: 0o755 });
}

const versionOf = async (python: string): Promise<string> => (await call(python, ["--version"])).stdout;

/** Makes a folder unless it was made with the same key. If another worker is making it, waits for that one. */
async function makeOnce(folder: string, key: readonly string[], make: () => Promise<void>): Promise<void> {
  const digest = createHash("sha256").update(JSON.stringify(key)).digest("hex");
  const [madeFrom, lock] = [join(folder, "made-from"), `${folder}.lock`];
  const isMade = async () => (await readFile(madeFrom, "utf8").catch(() => "")) === digest;
  await mkdir(dirname(folder), { recursive: true });
  const isLocked = () =>
    symlink(String(process.pid), lock).then(
      () => true,
      () => false,
    );
  while (!(await isMade())) {
    if (!(await isLocked())) {
      const maker = Number(await readlink(lock).catch(() => process.pid));
      if (!isAlive(maker)) await rm(lock, { force: true });
      await setTimeout(100);
      continue;
    }
    try {
      if (await isMade()) return;
      await rm(folder, { recursive: true, force: true });
      await mkdir(folder);
      await make();
      await writeFile(madeFrom, digest);
    } finally {
      await rm(lock, { force: true });
    }
  }
}

function skipped(why: string): null {
  console.log(`Python code was not tested: ${why}.`);
  return null;
}
