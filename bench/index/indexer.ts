import { readFileSync } from "node:fs";
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

const TICKS_A_SECOND = 100;

function usedBy({ lines }: Program): Pick<IndexerRun, "peakMiB" | "cpuSeconds"> {
  const pid = /"ponderPid":(\d+)/.exec(lines.findLast((line) => line.includes("ponderPid")) ?? "")?.[1];
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const peakMiB = Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
    // Fields 14 and 15; the second field is a name in brackets.
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    return { peakMiB, cpuSeconds: (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND };
  } catch {
    return { peakMiB: Number.NaN, cpuSeconds: Number.NaN };
  }
}
