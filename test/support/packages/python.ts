import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { promisify } from "node:util";
import { WHEEL } from "../../../api/platform/packages.ts";
import { TARBALLS } from "../../../api/site/packages/tarballs.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { folderForFile, forFile } from "../for-file.ts";
import { waitUntil } from "../wait-until.ts";
import { makeVenv, sharedVenv } from "./wheels.ts";

const call = promisify(execFile);

/** The exit code and the output of a program. */
export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A virtual environment with the wheel. */
export interface PythonHome {
  /** An empty folder outside the project. */
  readonly folder: string;
  /** The environment's interpreter. */
  readonly python: string;
  /** The wheel's program. */
  readonly program: string;
  /** Runs the interpreter in the folder. */
  readonly run: (args: readonly string[], env?: Readonly<Record<string, string>>) => Promise<Ended>;
}

/** The environment that all files share, with a folder for this file; null without pip. */
export async function pythonHome(): Promise<PythonHome | null> {
  const venv = await sharedVenv();
  return venv === null ? null : homeIn(venv, await folderForFile("python-"));
}

/** A new environment with the wheel, without its extras. */
export async function barePythonHome(): Promise<PythonHome> {
  const folder = await folderForFile("python-");
  const venv = join(folder, "venv");
  await makeVenv(venv, [join(TARBALLS, WHEEL)]);
  return homeIn(venv, folder);
}

function homeIn(venv: string, folder: string): PythonHome {
  const python = join(venv, "bin", "python");
  return {
    folder,
    python,
    program: join(venv, "bin", "agent-payment-trust"),
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

/** A Python program that serves on a port. */
export interface PythonServer {
  readonly url: string;
  /** The lines of its output. */
  readonly printed: () => readonly string[];
  readonly stop: () => Promise<void>;
}

type Interpreter = Pick<PythonHome, "python" | "folder">;
type Variables = Readonly<Record<string, string>>;

/** Starts a program that serves on this port, for the rest of the file. */
export async function pythonServer(
  home: Interpreter,
  script: string,
  { env, port }: { readonly env: Variables; readonly port: number },
): Promise<PythonServer> {
  const { printed, stop } = await start(home, [script], { env, ports: [port] });
  return { url: urlOf(port), printed, stop };
}

/**
 * Starts a program that serves several shops, for the rest of the file. It gets a port for each as its arguments, and
 * their settings as a list in `SHOPS`. Returns the shops by name. All have the output of the program.
 */
export async function pythonShops<Name extends string>(
  home: Interpreter,
  script: string,
  { env, shops }: { readonly env: Variables; readonly shops: Readonly<Record<Name, object>> },
): Promise<Record<Name, PythonServer>> {
  const named = await Promise.all(Object.keys(shops).map(async (name) => ({ name, port: await freePort() })));
  const ports = named.map(({ port }) => port);
  const { printed, stop } = await start(home, [script, ...ports.map(String)], {
    env: { ...env, SHOPS: JSON.stringify(Object.values(shops)) },
    ports,
  });
  const shopsByName = named.map(({ name, port }) => [name, { url: urlOf(port), printed, stop }]);
  return Object.fromEntries(shopsByName) as Record<Name, PythonServer>;
}

const urlOf = (port: number) => `http://127.0.0.1:${port}`;

/** Starts a program, and waits until it listens on the ports. */
async function start(
  { python, folder }: Interpreter,
  args: readonly string[],
  { env, ports }: { readonly env: Variables; readonly ports: readonly number[] },
): Promise<Omit<PythonServer, "url">> {
  const child = spawn(python, args, { cwd: folder, env: { PATH: process.env.PATH ?? "", ...env } });
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
  for (const port of ports) {
    const isUp = async () => child.exitCode !== null || (await fetch(urlOf(port)).catch(() => null)) !== null;
    await waitUntil(isUp, 30_000, 50);
  }
  if (child.exitCode !== null) throw new Error(`${args[0]} ended: ${err}`);
  return { stop, printed: () => out.split("\n").filter((line) => line !== "") };
}
