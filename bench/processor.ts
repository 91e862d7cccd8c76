import { readdirSync, readFileSync } from "node:fs";

const MS_A_TICK = 10;

interface Used {
  readonly parent: number;
  /** Its own and those of children that have ended. */
  readonly ticks: number;
}

/**
 * Processor time in milliseconds that a process and its descendants have used, ended ones included; not a number where
 * the system has no /proc.
 */
export function processorMs(root: number): number {
  const used = processorMsBy(root, () => "all");
  return used.get("all") ?? Number.NaN;
}

/** The same by kind of program, as its command line says; empty where the system has no /proc. */
export function processorMsBy<Kind extends string>(
  root: number,
  kindOf: (commandLine: string) => Kind,
): ReadonlyMap<Kind, number> {
  const all = readAll();
  const isWithin = (pid: number): boolean => pid === root || isWithinParent(all.get(pid));
  const isWithinParent = (used: Used | undefined) => used !== undefined && isWithin(used.parent);
  const sums = new Map<Kind, number>();
  for (const [pid, { ticks }] of all) {
    if (!isWithin(pid)) continue;
    const kind = kindOf(read(`/proc/${pid}/cmdline`).replaceAll("\0", " "));
    sums.set(kind, (sums.get(kind) ?? 0) + ticks * MS_A_TICK);
  }
  return sums;
}

/** The most memory that a process has had; not a number where the system does not say, or the process has ended. */
export const peakMiB = (pid: number): number =>
  Number(/VmHWM:\s+(\d+) kB/.exec(read(`/proc/${pid}/status`))?.[1]) / 1_024;

function readAll(): ReadonlyMap<number, Used> {
  const all = new Map<number, Used>();
  for (const name of namesIn("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const stat = read(`/proc/${name}/stat`);
    // The second field is a name in brackets; then parent 4, and utime, stime, cutime and cstime 14 to 17.
    const fields = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .map(Number);
    const ticks = fields.slice(11, 15).reduce((sum, one) => sum + one, 0);
    if (fields.length > 15) all.set(Number(name), { parent: fields[1] ?? 0, ticks });
  }
  return all;
}

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
