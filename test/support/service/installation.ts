import { type ChildProcess, spawn } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Address } from "viem";
import { privateKeyToAddress } from "viem/accounts";
import { NETWORKS } from "../../../api/kernel/networks.ts";
import { type AnvilClient, anvilClient } from "../../../scripts/embedded/anvil.ts";
import { identify, isAlive, type ProcessIdentity } from "../../../scripts/embedded/leftovers.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { waitUntil } from "../../../scripts/embedded/wait-until.ts";
import { holdToItsWord, letGo } from "../openapi/answers.ts";

const START = fileURLToPath(new URL("../../../scripts/start.ts", import.meta.url));
/** anvil's state on exit, Ignition's list of addresses. */
const TORN = ["chains/base/exit.json", "ignition/deployments/chain-8453/deployed_addresses.json"];
const READY_WITHIN_MS = 120_000;
const GONE_WITHIN_MS = 10_000;
const LAST_CHARACTERS = 4_000;

/** One `npm start` on a data directory: a process group of its own, plus any groups its children create. */
export interface Run {
  readonly output: () => string;
  /** Resolves at `ready`. Rejects with the output if the run ends first, or takes too long. */
  readonly ready: Promise<void>;
  /** Sends SIGKILL to all of its processes at once; rejects if one survives. */
  readonly kill: () => Promise<void>;
}

/** A data directory and free ports for `npm start`, reusable. */
export interface Installation {
  readonly url: string;
  /** Base, while it runs. */
  readonly chain: AnvilClient;
  readonly start: () => Run;
  /** The receiving address; exists after the first start. */
  readonly payTo: () => Address;
  /** The superuser's URL of its PostgreSQL. */
  readonly ownerUrl: () => string;
  /** Base as last saved; the returned function restores it, which is what a lost save leaves behind. */
  readonly keepSavedChain: () => () => void;
  /** Leaves the files that others write non-atomically as a kill during the write does. */
  readonly tearFiles: () => void;
  /** Ends everything and removes the directory. */
  readonly remove: () => Promise<void>;
}

export async function createInstallation(): Promise<Installation> {
  const dataDirectory = mkdtempSync(join(tmpdir(), "trust-kill-"));
  const [port, base, sepolia, postgres] = (await Promise.all([1, 2, 3, 4].map(() => freePort()))).map(String);
  const env = { DATA_DIR: dataDirectory, PORT: port, BASE_RPC_PORT: base, BASE_SEPOLIA_RPC_PORT: sepolia };
  const runs: Run[] = [];
  const url = `http://localhost:${port}`;
  holdToItsWord(url);
  const json = (path: string) => JSON.parse(readFileSync(join(dataDirectory, path), "utf8"));
  const saved = join(dataDirectory, "chains/base/saved.json.gz");
  return {
    url,
    chain: anvilClient(`http://127.0.0.1:${base}`, NETWORKS["eip155:8453"]),
    start() {
      const run = startRun({ ...env, POSTGRES_PORT: postgres }, dataDirectory);
      runs.push(run);
      return run;
    },
    payTo: () => privateKeyToAddress(json("keys.json").payToPrivateKey),
    ownerUrl: () => `postgres://postgres:${json("postgres/passwords.json").owner}@127.0.0.1:${postgres}/trust`,
    keepSavedChain() {
      copyFileSync(saved, `${saved}.kept`);
      return () => copyFileSync(`${saved}.kept`, saved);
    },
    tearFiles() {
      for (const path of TORN) writeFileSync(join(dataDirectory, path), "{");
    },
    async remove() {
      letGo(url);
      for (const run of runs) await run.kill();
      rmSync(dataDirectory, { recursive: true, force: true });
    },
  };
}

function startRun(env: Readonly<Record<string, string | undefined>>, dataDirectory: string): Run {
  const child = spawn(process.execPath, [START], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (text += chunk));
  const output = () => text;
  const ready = untilReady(child, output, dataDirectory);
  // A run killed during startup is never ready, and nobody may be waiting for it.
  ready.catch(() => undefined);
  return { output, ready, kill: () => killEverything(child, dataDirectory) };
}

async function untilReady(child: ChildProcess, output: () => string, dataDirectory: string): Promise<void> {
  const isReady = () => /^ready /m.test(output());
  await waitUntil(() => isReady() || !isRunning(child), READY_WITHIN_MS, 50);
  if (!isReady())
    throw new Error(
      `This start never became ready (exit ${child.exitCode}):\n${output()}\n${lastLines(dataDirectory)}`,
    );
}

/** The end of what each program of a data directory has logged. */
function lastLines(dataDirectory: string): string {
  const folder = join(dataDirectory, "logs");
  if (!existsSync(folder)) return "";
  const tail = (name: string) => read(join(folder, name)).slice(-LAST_CHARACTERS);
  return readdirSync(folder)
    .map((name) => `--- ${name}\n${tail(name)}`)
    .join("\n");
}

const isRunning = (child: ChildProcess) => child.exitCode === null && child.signalCode === null;

/** Every process is stopped before the first is killed, so that none notices another's end. */
async function killEverything(child: ChildProcess, dataDirectory: string): Promise<void> {
  const stopped = new Map<number, ProcessIdentity>();
  for (;;) {
    const fresh = family(isRunning(child) ? child.pid : undefined, dataDirectory).filter(
      ({ pid }) => !stopped.has(pid),
    );
    if (fresh.length === 0) break;
    for (const one of fresh) {
      stopped.set(one.pid, one);
      signal(one, "SIGSTOP");
    }
  }
  const killed = [...stopped.values()];
  for (const one of killed) signal(one, "SIGKILL");
  if (!(await waitUntil(() => !killed.some(isAlive), GONE_WITHIN_MS, 5)))
    throw new Error(`Some of the processes ${killed.map(({ pid }) => pid)} survive SIGKILL.`);
}

function signal({ pid }: ProcessIdentity, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It ended on its own.
  }
}

/** The process, its descendants, and everything else started for this data directory. Works only on Linux. */
function family(root: number | undefined, dataDirectory: string): ProcessIdentity[] {
  const all = readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
  const parents = new Map(all.map((pid) => [pid, parentOf(pid)]));
  const descends = (pid: number | undefined): boolean =>
    pid !== undefined && (pid === root || descends(parents.get(pid)));
  const belongs = (pid: number) => descends(pid) || read(`/proc/${pid}/environ`).includes(dataDirectory);
  return all
    .filter(belongs)
    .map(identify)
    .filter((one) => one !== null);
}

function parentOf(pid: number): number | undefined {
  const stat = read(`/proc/${pid}/stat`);
  const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  return parent > 1 ? parent : undefined;
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
