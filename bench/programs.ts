import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export interface Program {
  readonly child: ChildProcess;
  /** Every line it has printed. */
  readonly lines: readonly string[];
}

export interface ProgramOptions {
  readonly ready?: RegExp | undefined;
  readonly args?: readonly string[];
  /** Called with the process before it is ready. */
  readonly spawned?: (pid: number) => void;
}

const running = new Set<ChildProcess>();
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => {
    for (const child of running) child.kill("SIGTERM");
    process.exit(1);
  });

/** Starts one of the project's programs (a path from its root) and waits for a line that matches `ready`. */
export async function startProgram(
  file: string,
  env: Record<string, string>,
  { ready = /^ready/, args = [], spawned = () => {} }: ProgramOptions = {},
): Promise<Program> {
  const path = fileURLToPath(new URL(`../${file}`, import.meta.url));
  const child = spawn(process.execPath, [path, ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  running.add(child);
  spawned(child.pid ?? 0);
  child.once("exit", () => running.delete(child));
  const lines: string[] = [];
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      lines.push(line);
      if (ready.test(line)) resolve();
    });
    child.once("exit", () => reject(new Error(`${file} ended before it was ready:\n${lines.join("\n")}`)));
  });
  return { child, lines };
}

export const stopProgram = ({ child }: Program): Promise<void> =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.once("exit", () => resolve());
    child.kill("SIGTERM");
  });

export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

export const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN;
