import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { WHEEL } from "../../../api/platform/packages.ts";
import { TARBALLS } from "../../../api/site/packages/tarballs.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { recentPython } from "../../../scripts/packages.ts";
import { folderForFile, forFile } from "../for-file.ts";
import { waitUntil } from "../wait-until.ts";
import { pipEnvironment } from "./wheels.ts";

const call = promisify(execFile);

/** The exit code and the output of a program. */
export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A virtual environment with the wheel. */
export interface PythonHome {
  /** A folder outside the project. */
  readonly folder: string;
  /** The environment's interpreter. */
  readonly python: string;
  /** The wheel's program. */
  readonly program: string;
  /** Runs the interpreter in the folder. */
  readonly run: (args: readonly string[], env?: Readonly<Record<string, string>>) => Promise<Ended>;
}

/**
 * Creates a virtual environment whose pip is the interpreter's own. Python needs three seconds to unpack another one.
 */
export async function newVirtualEnvironment(interpreter: string, path: string): Promise<void> {
  await call(interpreter, ["-m", "venv", "--without-pip", path]);
  const { stdout: own } = await call(interpreter, ["-c", "import sys; print(sys.executable)"]);
  const pip = `#!/bin/sh\nexec ${own.trim()} -m pip --python ${path}/bin/python "$@"\n`;
  await writeFile(join(path, "bin/pip"), pip, { mode: 0o755 });
}

/** Installs the service's wheel with these extras, and other packages, into a new virtual environment; null without pip. */
export async function pythonHome(
  extras: readonly string[] = [],
  others: readonly string[] = [],
): Promise<PythonHome | null> {
  const pip = await pipEnvironment();
  const interpreter = await recentPython();
  if (pip === null || interpreter === null) return null;
  const folder = await folderForFile("python-");
  const bin = (name: string) => join(folder, "venv", "bin", name);
  await newVirtualEnvironment(interpreter, join(folder, "venv"));
  const wheel = join(TARBALLS, WHEEL);
  const named = extras.length === 0 ? wheel : `${wheel}[${extras.join()}]`;
  await call(bin("pip"), ["install", "--quiet", named, ...others], { env: { ...process.env, ...pip } });
  const python = bin("python");
  return {
    folder,
    python,
    program: bin("agent-payment-trust"),
    run: (args, env = {}) => endOf(python, args, { cwd: folder, env: { PATH: process.env.PATH ?? "", ...env } }),
  };
}

/** Runs a program to its end, with any exit code. */
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

/** A Python program that serves on a port, which is its first argument. */
export interface PythonServer {
  readonly url: string;
  /** The lines of its output. */
  readonly printed: () => readonly string[];
  readonly stop: () => Promise<void>;
}

export interface PythonServerPlan {
  readonly env: Readonly<Record<string, string>>;
  /** The port on which it listens if it ignores its argument. Default: a free port, which is its argument. */
  readonly port?: number;
}

/** Starts the program for the rest of the file. */
export async function pythonServer(
  { python, folder }: Pick<PythonHome, "python" | "folder">,
  script: string,
  { env, port: named }: PythonServerPlan,
): Promise<PythonServer> {
  const port = named ?? (await freePort());
  const child = spawn(python, [script, String(port)], { cwd: folder, env: { PATH: process.env.PATH ?? "", ...env } });
  let [out, err] = ["", ""];
  child.stdout.on("data", (part) => {
    out += part;
  });
  child.stderr.on("data", (part) => {
    err += part;
  });
  const ended = once(child, "exit");
  const stop = async () => {
    child.kill();
    await ended;
  };
  await forFile({ stop });
  const url = `http://127.0.0.1:${port}`;
  const isUp = async () => child.exitCode !== null || (await fetch(url).catch(() => null)) !== null;
  await waitUntil(isUp, 30_000, 50);
  if (child.exitCode !== null) throw new Error(`${script} ended: ${err}`);
  return { url, stop, printed: () => out.split("\n").filter((line) => line !== "") };
}
