import { readFileSync } from "node:fs";
import { type Program, startProgram, stopProgram } from "../programs.ts";
import { SERVICE } from "./generated-chain.ts";

/** What the indexer of a generated chain is started with, beside its database and node. */
export const INDEXER_SETTINGS = {
  ...{ PAY_TO_ADDRESS: SERVICE, OWN_ADDRESSES: "", ESCROW_ADDRESSES: "", ESCROW_START_BLOCK: "" },
  ...{ BASE_WS_URL: "", START_BLOCK: "1", RPC_COPIES: "25", POLL_MS: "250", EXCLUSIVE: "1", LOG_LEVEL: "info" },
  ...{ INDEX_SCOPE: "full", INDEX_HISTORY: "", INDEX_VIEWS_SCHEMA: "live", PONDER_PORT: "", PONDER_LOG_LEVEL: "error" },
};

export interface IndexerRun {
  readonly seconds: number;
  /** The most memory that Ponder's process has held, where the system tells; else not a number. */
  readonly peakMiB: number;
}

/** Runs the indexer's program, Ponder in a process of its own, until its views are there. */
export async function runIndexer(env: Readonly<Record<string, string>>): Promise<IndexerRun> {
  const started = performance.now();
  const program = await startProgram("scripts/indexer.ts", { ...INDEXER_SETTINGS, ...env }, /"index ready"/);
  const seconds = (performance.now() - started) / 1000;
  const peakMiB = peakOf(program);
  await stopProgram(program);
  return { seconds, peakMiB };
}

function peakOf({ lines }: Program): number {
  const pid = /"ponderPid":(\d+)/.exec(lines.findLast((line) => line.includes("ponderPid")) ?? "")?.[1];
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
  } catch {
    return Number.NaN;
  }
}
