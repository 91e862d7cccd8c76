import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { freePort } from "../scripts/embedded/ports.ts";

export const ROOT = fileURLToPath(new URL("..", import.meta.url));

export interface Program {
  readonly child: ChildProcess;
  readonly pid: number;
  /** The printed lines. */
  readonly lines: readonly string[];
}

const running = new Set<ChildProcess>();
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => {
    for (const child of running) child.kill("SIGTERM");
    process.exit(1);
  });

type Environment = Readonly<Record<string, string>>;

export interface ProgramOptions {
  /** The pattern of the line to wait for, or null. Defaults to "ready". */
  readonly ready?: RegExp | null;
  readonly args?: readonly string[];
  /** The command that runs the file. Defaults to Node. */
  readonly command?: string;
}

/** Starts one of the project's programs (a path from its root, or absolute) and waits until a line reports that it is ready. */
export async function startProgram(
  file: string,
  env: Environment,
  { ready = /^ready/, args = [], command = process.execPath }: ProgramOptions = {},
): Promise<Program> {
  const path = resolve(ROOT, file);
  const child = spawn(command === path ? path : command, command === path ? args : [path, ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
    // A separate session, like the service's processes, because a busy system shares its processors among sessions.
    detached: true,
  });
  running.add(child);
  child.once("exit", () => running.delete(child));
  const lines: string[] = [];
  await new Promise<void>((resolve, reject) => {
    if (ready === null) resolve();
    createInterface({ input: child.stdout }).on("line", (line) => {
      lines.push(line);
      if (ready?.test(line)) resolve();
    });
    child.once("exit", () => reject(new Error(`${file} ended before it was ready:\n${lines.join("\n")}`)));
  });
  return { child, pid: child.pid ?? 0, lines };
}

const SAMPLE_MS = 100;

/** Runs one of the project's programs to its end. */
export async function runProgram(
  file: string,
  env: Environment,
  args: readonly string[],
): Promise<{ readonly peakMiB: number }> {
  const program = await startProgram(file, env, { ready: null, args });
  let peakMiB = 0;
  const sampler = setInterval(() => {
    peakMiB = Math.max(peakMiB, peakMiBOf(program.pid) || 0);
  }, SAMPLE_MS);
  const code = await new Promise((resolve) => program.child.once("exit", resolve));
  clearInterval(sampler);
  if (code !== 0) throw new Error(`${file} ended with ${code}:\n${program.lines.join("\n")}`);
  return { peakMiB };
}

export const stopProgram = ({ child }: Program): Promise<void> =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.once("exit", () => resolve());
    child.kill("SIGTERM");
  });

export interface Service extends Program {
  readonly baseUrl: string;
  readonly rpcUrl: string;
  readonly databaseUrl: string;
}

/** Runs `work` while the whole service runs with separate data on free ports. */
export async function withService<T>(work: (service: Service) => Promise<T>): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), "bench-"));
  const [PORT = "", BASE_RPC_PORT = "", BASE_SEPOLIA_RPC_PORT = "", POSTGRES_PORT = ""] = await Promise.all(
    Array.from({ length: 4 }, async () => String(await freePort())),
  );
  const env = { PORT, BASE_RPC_PORT, BASE_SEPOLIA_RPC_PORT, POSTGRES_PORT, DATA_DIR: directory };
  const program = await startProgram("scripts/start.ts", env);
  try {
    const passwords = JSON.parse(readFileSync(join(directory, "postgres", "passwords.json"), "utf8"));
    return await work({
      ...program,
      baseUrl: `http://127.0.0.1:${PORT}`,
      rpcUrl: `http://127.0.0.1:${BASE_RPC_PORT}`,
      databaseUrl: `postgres://trust_service:${passwords.service}@127.0.0.1:${POSTGRES_PORT}/trust`,
    });
  } finally {
    await stopProgram(program);
    rmSync(directory, { recursive: true, force: true });
  }
}

const MS_A_TICK = 10;

/**
 * Returns the processor time in milliseconds of a process and its descendants, including ended ones, whose command line
 * matches. It is 0 if the system has no /proc.
 */
export function processorMs(root: number, which = /^/): number {
  const all = new Map(namesIn("/proc").flatMap((name) => (/^\d+$/.test(name) ? [[Number(name), statOf(name)]] : [])));
  const isWithin = (pid: number): boolean => pid === root || (all.has(pid) && isWithin(all.get(pid)?.parent ?? 0));
  let ms = 0;
  for (const [pid, { ticks }] of all)
    if (isWithin(pid) && which.test(read(`/proc/${pid}/cmdline`).replaceAll("\0", " "))) ms += ticks * MS_A_TICK;
  return ms;
}

/** Returns the parent, and the ticks including ended children. */
function statOf(pid: string): { readonly parent: number; readonly ticks: number } {
  const stat = read(`/proc/${pid}/stat`);
  // The second field is a name in brackets; then parent 4, and utime, stime, cutime and cstime 14 to 17.
  const fields = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  return { parent: fields[1] ?? 0, ticks: fields.slice(11, 15).reduce((sum, one) => sum + one, 0) };
}

/** Returns the peak memory of a process, or NaN if the system does not report it or the process has ended. */
const peakMiBOf = (pid: number): number => Number(/VmHWM:\s+(\d+) kB/.exec(read(`/proc/${pid}/status`))?.[1]) / 1_024;

/** A process may end while its files are read. */
function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
