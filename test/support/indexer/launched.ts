import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { inject } from "vitest";
import type { TestChain } from "../chain/chain.ts";
import type { TestEscrow } from "../escrow/contract.ts";
import type { TestDatabase } from "../service/database.ts";
import { bareEnvironment, PAY_TO } from "../service/environment.ts";

import { waitUntil } from "../wait-until.ts";

/** The indexer's program, as `npm run indexer` runs it. */
export interface Launched {
  /** What it logged with this message, one record at a time. */
  readonly said: (message: string) => readonly Record<string, unknown>[];
  /** Resolves once it has logged this message this many times. */
  readonly saying: (message: string, times?: number) => Promise<void>;
  /** The end of what it printed. */
  readonly output: () => string;
  readonly ponderPid: () => number;
  readonly kill: (signal: NodeJS.Signals) => void;
  /** Closes its standard input, which is what the end of its parent does. */
  readonly letGo: () => void;
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
  /** Resumes it, and waits for its end. */
  readonly stop: () => Promise<void>;
}

const FAST = { POLL_MS: "250", RPC_COPIES: "25", INDEX_HEAP_MIB: "512", INDEX_SCOPE: "selective" };
const START_WITHIN_MS = 120_000;

/** Starts the program, or that in another folder; it ends with this process, whatever becomes of the test. */
export function launchIndexer(env: Readonly<Record<string, string>>, folder?: string): Launched {
  const child = spawn(process.execPath, [folder === undefined ? inject("programs").indexer : "scripts/indexer.ts"], {
    cwd: folder,
    env: { ...bareEnvironment(), ...FAST, SUPERVISED: "1", ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const said = (message: string) =>
    output
      .split("\n")
      .filter((line) => line.includes(`"msg":"${message}"`))
      .map((line): Record<string, unknown> => JSON.parse(line));
  const ended = new Promise<number | string>((resolve) => {
    child.once("exit", (code, signal) => resolve(code ?? signal ?? "gone"));
  });
  return {
    said,
    saying: async (message, times = 1) => {
      const heard = await waitUntil(() => said(message).length >= times, START_WITHIN_MS);
      if (!heard) throw new Error(`The indexer did not say "${message}" ${times} times. It said:\n${output}`);
    },
    output: () => output.slice(-4_000),
    ponderPid: () => Number(said("ponder started").at(-1)?.ponderPid),
    kill: (signal) => child.kill(signal),
    letGo: () => child.stdin.end(),
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

/** Starts the program for a service under test: it follows the chain, with the escrows that it names. */
export const launchIndexerOf = ({ chain, database, escrows = [], env }: IndexerPlan): Launched =>
  launchIndexer({
    DATABASE_URL: database.indexerUrl,
    BASE_RPC_URL: chain.rpcUrl,
    PAY_TO_ADDRESS: PAY_TO,
    ESCROW_ADDRESSES: escrows.map(({ address }) => address).join(","),
    ...env,
  });

/** Whether a process of this id runs, or may run again; one that has ended may still be in its parent's list. */
export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
