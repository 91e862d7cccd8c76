import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { WHEEL } from "../../../api/platform/packages.ts";
import { TARBALLS } from "../../../api/site/packages/tarballs.ts";
import { buildWheel, isIndexMissing, recentPython } from "../../../scripts/packages.ts";
import { folderForFile } from "../folder.ts";

const CONSTRAINTS = fileURLToPath(new URL("../../../packages/python/constraints.txt", import.meta.url));
const call = promisify(execFile);

/** An end of a program. */
export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A virtual environment with the wheel. */
export interface PythonHome {
  /** A folder outside the project. */
  readonly folder: string;
  /** Its interpreter. */
  readonly python: string;
  /** The wheel's program. */
  readonly program: string;
  /** Runs the interpreter in the folder. */
  readonly run: (args: readonly string[], env?: Readonly<Record<string, string>>) => Promise<Ended>;
}

/**
 * Installs the wheel that the service serves with these extras, and other packages, into a new virtual environment. Returns
 * null, with a printed line, where Python 3.10, its `venv`, or the package index cannot be had.
 */
export async function pythonHome(
  extras: readonly string[] = [],
  others: readonly string[] = [],
): Promise<PythonHome | null> {
  const interpreter = await recentPython();
  if (interpreter === null) return skipped("Python 3.10 or newer with venv is not installed");
  if (!(await buildWheel())) return skipped("the wheel cannot be built without the package index");
  const folder = await folderForFile("python-");
  const bin = (name: string) => join(folder, "venv", "bin", name);
  try {
    await call(interpreter, ["-m", "venv", join(folder, "venv")]);
    const pip = (...args: string[]) => call(bin("pip"), ["--quiet", "--disable-pip-version-check", ...args]);
    const wheel = join(TARBALLS, WHEEL);
    const named = extras.length === 0 ? wheel : `${wheel}[${extras.join()}]`;
    await pip("install", "--constraint", CONSTRAINTS, named, ...others);
  } catch (error) {
    if (!isIndexMissing(error)) throw error;
    return skipped("the package index cannot be reached");
  }
  const python = bin("python");
  return {
    folder,
    python,
    program: bin("agent-payment-trust"),
    run: (args, env = {}) => endOf(python, args, { cwd: folder, env: { PATH: process.env.PATH ?? "", ...env } }),
  };
}

/** A program's end, whatever its exit code. */
export async function endOf(
  program: string,
  args: readonly string[],
  options: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
): Promise<Ended> {
  try {
    return { code: 0, ...(await call(program, args, { maxBuffer: 16_777_216, ...options })) };
  } catch (error) {
    const { code, stdout = "", stderr = "" } = error as { code?: unknown; stdout?: string; stderr?: string };
    if (typeof code !== "number") throw error;
    return { code, stdout, stderr };
  }
}

function skipped(why: string): null {
  console.log(`The Python package was not tested: ${why}.`);
  return null;
}
