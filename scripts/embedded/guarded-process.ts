import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import type { Writable } from "node:stream";

/**
 * The shell becomes the program (same pid) and leaves behind a watcher with file descriptor 3, a pipe from this process. When
 * this process ends for any reason, the pipe closes and the watcher kills the program with its process group, so that even a
 * kill -9 leaves no orphan. A line on the pipe means that the program has already ended.
 */
const WATCHED = '{ read _ <&3 || kill -s "$0" -- -$$; } 2>/dev/null >&2 & exec 3<&-; exec "$@"';

export interface ProcessPlan {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** Another user to run as, which requires root. */
  readonly user?: { readonly uid: number; readonly gid: number };
  /** The signal that requests the program to end. Default SIGTERM. */
  readonly stopSignal?: "SIGINT" | "SIGTERM";
  /** The signal that ends it immediately when this process is gone. Default SIGKILL. */
  readonly orphanSignal?: "SIGQUIT" | "SIGKILL";
  /** The file to which output is appended. Without it, only the end of the output is kept, in memory. */
  readonly logFile?: string;
}

export interface GuardedProcess {
  readonly pid: number;
  /** Resolves with the exit code or the signal when the program has ended. */
  readonly ended: Promise<number | string>;
  readonly running: () => boolean;
  /** Returns the end of its output. */
  readonly lastOutput: () => string;
  /** Requests it to end, and kills it after the grace period. */
  readonly stop: (graceMs?: number) => Promise<void>;
}

const KEPT_OUTPUT = 4_000;

/**
 * Starts a program that never outlives this process. It has its own process group, so a terminal's Ctrl-C does not reach it.
 */
export async function startGuarded(plan: ProcessPlan): Promise<GuardedProcess> {
  const { stopSignal = "SIGTERM", orphanSignal = "SIGKILL" } = plan;
  const log = plan.logFile === undefined ? "pipe" : openSync(plan.logFile, "a", 0o600);
  const child = spawn("/bin/sh", ["-c", WATCHED, orphanSignal.slice(3), plan.command, ...plan.args], {
    cwd: plan.cwd ?? "/",
    env: plan.env ?? process.env,
    detached: true,
    stdio: ["ignore", log, log, "pipe"],
    ...plan.user,
  });
  if (typeof log === "number") closeSync(log);
  const lastOutput = plan.logFile === undefined ? keepTail(child) : () => readTail(plan.logFile ?? "");
  const ended = new Promise<number | string>((resolve) => {
    child.once("exit", (code, by) => {
      (child.stdio[3] as Writable).end("ended\n");
      resolve(code ?? by ?? 0);
    });
  });
  (child.stdio[3] as Writable).on("error", () => {});
  const pid = await spawned(child);
  const running = () => child.exitCode === null && child.signalCode === null;
  const stop = async (graceMs = 8_000) => {
    if (!running()) return;
    child.kill(stopSignal);
    const killer = setTimeout(() => child.kill("SIGKILL"), graceMs);
    await ended;
    clearTimeout(killer);
  };
  return { pid, ended, running, lastOutput, stop };
}

function keepTail(child: ChildProcess): () => string {
  let tail = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      tail = (tail + text).slice(-KEPT_OUTPUT);
    });
  }
  return () => tail;
}

const readTail = (file: string): string => readFileSync(file, "utf8").slice(-KEPT_OUTPUT);

const spawned = (child: ChildProcess) =>
  new Promise<number>((resolve, reject) => {
    child.once("spawn", () => resolve(child.pid as number));
    child.once("error", reject);
  });
