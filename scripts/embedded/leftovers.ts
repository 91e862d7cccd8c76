import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { waitUntil } from "./wait-until.ts";

/** A process as it can be recognized later: pids are reused, but not together with their start time. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startedAt: string;
}

/** Who runs under this pid now; null if there is no one (a zombie does not count). */
export function identify(pid: number): ProcessIdentity | null {
  const startedAt = process.platform === "linux" ? linuxStart(pid) : ps(pid, "lstart=");
  return startedAt === null || startedAt === "" ? null : { pid, startedAt };
}

/** The command line of a running process; empty if there is none. */
export function commandLineOf(pid: number): string {
  if (process.platform !== "linux") return ps(pid, "command=") ?? "";
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
  } catch {
    return "";
  }
}

export const isAlive = (process: ProcessIdentity): boolean => identify(process.pid)?.startedAt === process.startedAt;

/** Ends exactly this process: the signal, then SIGKILL after the grace period. Does nothing if it has already ended. */
export async function endProcess(target: ProcessIdentity, signal: NodeJS.Signals, graceMs: number): Promise<void> {
  if (!isAlive(target)) return;
  process.kill(target.pid, signal);
  if (await waitUntil(() => !isAlive(target), graceMs)) return;
  process.kill(target.pid, "SIGKILL");
  await waitUntil(() => !isAlive(target), 2_000);
}

function linuxStart(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the program's name in brackets, which may itself contain spaces and brackets.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? null : (fields[19] ?? null);
  } catch {
    return null;
  }
}

function ps(pid: number, column: string): string | null {
  try {
    return execFileSync("ps", ["-o", column, "-p", String(pid)], { encoding: "utf8" }).trim();
  } catch {
    return null;
  }
}
