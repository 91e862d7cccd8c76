import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { WHEEL } from "../../../api/platform/packages.ts";
import { TARBALLS } from "../../../api/site/packages/tarballs.ts";
import { buildWheel, isIndexMissing, recentPython } from "../../../scripts/packages.ts";
import { waitUntil } from "../wait-until.ts";

const call = promisify(execFile);
const CONSTRAINTS = fileURLToPath(new URL("../../../packages/python/constraints.txt", import.meta.url));
const CACHE = fileURLToPath(new URL("../../../node_modules/.cache/wheels", import.meta.url));
/** Everything that the wheel, the documentation's programs, and the tests install. */
const REQUIREMENTS = [
  `${join(TARBALLS, WHEEL)}[gate,escrow]`,
  "x402[evm,requests,httpx]",
  "fastapi",
  "uvicorn",
  "flask[async]",
  "jwcrypto",
  "psycopg[binary,pool]",
  "langchain-mcp-adapters",
];
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
  const { stdout: version } = await call(python, ["--version"]);
  const digest = createHash("sha256").update(
    JSON.stringify([version, REQUIREMENTS, UNCONSTRAINED, await readFile(CONSTRAINTS, "utf8")]),
  );
  const folder = join(CACHE, digest.digest("hex").slice(0, 16));
  try {
    if (!existsSync(folder)) await fill(python, folder);
  } catch (error) {
    if (!isIndexMissing(error)) throw error;
    return skipped("the package index cannot be reached");
  }
  // pip reads PIP_NO_COMPILE inverted: "no" is --no-compile.
  return { PIP_NO_INDEX: "1", PIP_FIND_LINKS: folder, PIP_NO_COMPILE: "no", PIP_DISABLE_PIP_VERSION_CHECK: "1" };
}

/** Fills the folder, unless another worker is filling it. */
async function fill(python: string, folder: string): Promise<void> {
  const filling = `${folder}-filling`;
  await mkdir(CACHE, { recursive: true });
  const isOurs = await mkdir(filling).then(
    () => true,
    () => false,
  );
  if (!isOurs) await waitUntil(() => existsSync(folder) || !existsSync(filling), 120_000);
  if (existsSync(folder)) return;
  try {
    const wheel = ["-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--wheel-dir", filling];
    await call(python, [...wheel, "--constraint", CONSTRAINTS, ...REQUIREMENTS]);
    await call(python, [...wheel, UNCONSTRAINED]);
    // Ours is installed by its URL.
    await rm(join(filling, WHEEL), { force: true });
    await rename(filling, folder);
  } finally {
    await rm(filling, { recursive: true, force: true });
  }
}

function skipped(why: string): null {
  console.log(`Python code was not tested: ${why}.`);
  return null;
}
