import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import type { TestChain } from "../chain/chain.ts";
import type { TestEscrow } from "../escrow/contract.ts";
import type { TestDatabase } from "../service/database.ts";
import { bareEnvironment, PAY_TO } from "../service/environment.ts";

import { waitUntil } from "../wait-until.ts";

/** The indexer's program, as `npm run indexer` runs it. */
export interface Launched {
  /** The log records with this message. */
  readonly logged: (message: string) => readonly Record<string, unknown>[];
  /** Resolves once this message has been logged this number of times. */
  readonly untilLogged: (message: string, times?: number) => Promise<void>;
  /** The end of its output. */
  readonly output: () => string;
  readonly ponderPid: () => number;
  readonly kill: (signal: NodeJS.Signals) => void;
  /** Closes its standard input, as the end of its parent would. */
  readonly closeInput: () => void;
  /** The exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
  /** Resumes it and waits for its end. */
  readonly stop: () => Promise<void>;
}

const FAST = { POLL_MS: "250", RPC_COPIES: "25", INDEX_HEAP_MIB: "512", INDEX_SCOPE: "selective" };
const START_WITHIN_MS = 120_000;

/** Starts the program, or the one in another folder. It ends with this process in every case. */
export function launchIndexer(env: Readonly<Record<string, string>>, folder?: string): Launched {
  const child = spawn(process.execPath, ["scripts/indexer.ts"], {
    cwd: folder,
    env: { ...bareEnvironment(), ...FAST, SUPERVISED: "1", ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const logged = (message: string) =>
    output
      .split("\n")
      .filter((line) => line.includes(`"msg":"${message}"`))
      .map((line): Record<string, unknown> => JSON.parse(line));
  const ended = new Promise<number | string>((resolve) => {
    child.once("exit", (code, signal) => resolve(code ?? signal ?? "gone"));
  });
  return {
    logged,
    untilLogged: async (message, times = 1) => {
      const isLogged = await waitUntil(() => logged(message).length >= times, START_WITHIN_MS);
      if (!isLogged) throw new Error(`The indexer did not log "${message}" ${times} times. Its output:\n${output}`);
    },
    output: () => output.slice(-4_000),
    ponderPid: () => Number(logged("ponder started").at(-1)?.ponderPid),
    kill: (signal) => child.kill(signal),
    closeInput: () => child.stdin.end(),
    ended,
    async stop() {
      child.kill("SIGCONT");
      child.stdin.end();
      await ended;
    },
  };
}

export interface IndexerPlan {
  readonly chain: Pick<TestChain, "rpcUrl">;
  readonly database: Pick<TestDatabase, "indexerUrl">;
  readonly escrows?: readonly Pick<TestEscrow, "address">[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts the program for a service under test. It follows the chain with these escrows. */
export const launchIndexerOf = ({ chain, database, escrows = [], env }: IndexerPlan): Launched =>
  launchIndexer({
    DATABASE_URL: database.indexerUrl,
    BASE_RPC_URL: chain.rpcUrl,
    PAY_TO_ADDRESS: PAY_TO,
    ESCROW_ADDRESSES: escrows.map(({ address }) => address).join(","),
    ...env,
  });

/**
 * Returns whether a process with this id runs or is stopped. An ended process may remain in its parent's list as a
 * zombie.
 */
export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
