import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { checkAgainstDescription, forgetService } from "../openapi/answers.ts";
import { waitUntil } from "../wait-until.ts";

const START = fileURLToPath(new URL("../../../scripts/start.ts", import.meta.url));
const READY_WITHIN_MS = 120_000;

/** One run of `npm start`. */
export interface Run {
  readonly child: ChildProcess;
  readonly output: () => string;
  /** The exit code, or null after a signal. */
  readonly ended: Promise<number | null>;
  /** Resolves with the output at `ready`. Rejects with the programs' logs if the run ends first. */
  readonly ready: () => Promise<string>;
}

/** A reusable data directory with free ports for `npm start`. */
export interface Installation {
  readonly env: Readonly<Record<"DATA_DIR" | "PORT" | "BASE_RPC_PORT" | "BASE_SEPOLIA_RPC_PORT", string>>;
  readonly url: string;
  readonly start: (more?: Readonly<Record<string, string>>) => Run;
  /** Its processes with this text in their command line, of any parent. Only Linux lists them here. */
  readonly processes: (of?: string) => readonly number[];
  readonly remove: () => void;
}

export async function createInstallation(): Promise<Installation> {
  const [PORT, BASE_RPC_PORT, BASE_SEPOLIA_RPC_PORT] = (await Promise.all([1, 2, 3].map(() => freePort()))).map(
    String,
  ) as [string, string, string];
  const DATA_DIR = mkdtempSync(join(tmpdir(), "trust-start-"));
  const env = { DATA_DIR, PORT, BASE_RPC_PORT, BASE_SEPOLIA_RPC_PORT };
  const url = `http://localhost:${PORT}`;
  checkAgainstDescription(url);
  const runs: Run[] = [];
  return {
    env,
    url,
    start(more = {}) {
      const run = startRun({ ...env, ...more });
      runs.push(run);
      return run;
    },
    processes(of = "") {
      const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
      const ours = pids.filter((pid) => read(`/proc/${pid}/environ`).includes(`DATA_DIR=${DATA_DIR}\0`));
      const command = (pid: string) => read(`/proc/${pid}/cmdline`);
      // Each program has a guardian shell with the same command line.
      return ours
        .filter((pid) => command(pid).includes(of) && (of === "" || !/^\S*sh\0/.test(command(pid))))
        .map(Number);
    },
    remove() {
      forgetService(url);
      for (const { child } of runs) child.kill("SIGKILL");
      rmSync(DATA_DIR, { recursive: true, force: true, maxRetries: 20 });
    },
  };
}

function startRun(env: Readonly<Record<string, string>> & { readonly DATA_DIR: string }): Run {
  const child = spawn(process.execPath, [START], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (text += chunk));
  const output = () => text;
  const isReady = () => /^ready /m.test(text);
  const ready = async () => {
    await waitUntil(() => isReady() || child.exitCode !== null || child.signalCode !== null, READY_WITHIN_MS, 50);
    expect(isReady(), `${text}\n${lastLines(join(env.DATA_DIR, "logs"))}`).toBe(true);
    return text;
  };
  return { child, output, ready, ended: new Promise((resolve) => child.once("exit", resolve)) };
}

/** The end of each program's log in a data directory. */
const lastLines = (folder: string): string =>
  (existsSync(folder) ? readdirSync(folder) : [])
    .map((name) => `--- ${name}\n${read(join(folder, name)).slice(-4_000)}`)
    .join("\n");

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
