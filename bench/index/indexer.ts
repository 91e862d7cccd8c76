import { peakMiB, processorMs } from "../processor.ts";
import { type Program, startProgram, stopProgram } from "../programs.ts";
import { SERVICE } from "./generated-chain.ts";

/** How to start the indexer of a generated chain, besides its database and node. */
export const INDEXER_SETTINGS = {
  ...{ PAY_TO_ADDRESS: SERVICE, OWN_ADDRESSES: "", ESCROW_ADDRESSES: "", ESCROW_START_BLOCK: "" },
  ...{ BASE_WS_URL: "", START_BLOCK: "1", RPC_COPIES: "25", POLL_MS: "250", EXCLUSIVE: "1", LOG_LEVEL: "info" },
  ...{ INDEX_SCOPE: "full", INDEX_HISTORY: "", INDEX_VIEWS_SCHEMA: "live", PONDER_PORT: "", PONDER_LOG_LEVEL: "error" },
};

export interface IndexerRun {
  readonly seconds: number;
  /** The peak memory of Ponder's process and its processor time; not numbers if the system does not report them. */
  readonly peakMiB: number;
  readonly cpuSeconds: number;
}

/** Runs the indexer's program, with Ponder in its own process, until its views exist. */
export async function runIndexer(env: Readonly<Record<string, string>>): Promise<IndexerRun> {
  const started = performance.now();
  const program = await startProgram("scripts/indexer.ts", { ...INDEXER_SETTINGS, ...env }, { ready: /"index ready"/ });
  const seconds = (performance.now() - started) / 1000;
  const used = usedBy(program);
  await stopProgram(program);
  return { seconds, ...used };
}

function usedBy({ lines }: Program): Pick<IndexerRun, "peakMiB" | "cpuSeconds"> {
  const pid = Number(/"ponderPid":(\d+)/.exec(lines.findLast((line) => line.includes("ponderPid")) ?? "")?.[1]);
  return { peakMiB: peakMiB(pid), cpuSeconds: processorMs(pid) / 1_000 };
}
