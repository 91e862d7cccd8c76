import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../scripts/embedded/ports.ts";
import { type Postgres, startPostgres } from "../../scripts/embedded/postgres.ts";
import { startProgram, stopProgram } from "../programs.ts";
import { type ChainPlan, type GeneratedChain, generateChain } from "./generated-chain.ts";

export const PER_BLOCK = 100;

export interface Stage {
  readonly env: Readonly<Record<"DATABASE_URL" | "BASE_RPC_URL", string>>;
  readonly chain: GeneratedChain;
  /** For files; removed at the end. */
  readonly folder: string;
}

/** The chain ends now; `perBlock` is 100 by default. */
export type StagePlan = Pick<ChainPlan, "transfers"> &
  Partial<ChainPlan> & {
    /** Whether the node compresses what it answers. Default: it does not. */
    readonly isCompressing?: boolean;
  };

/** A PostgreSQL of its own, and a folder for files, while `work` runs. */
export async function withPostgres<T>(work: (postgres: Postgres, folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "bench-index-"));
  chmodSync(folder, 0o711);
  const postgres = await startPostgres({
    ...{ directory: join(folder, "postgres"), port: await freePort() },
    settings: ["shared_buffers=512MB", "max_wal_size=4GB"],
  });
  const load = () =>
    loadavg()
      .map((one) => one.toFixed(1))
      .join(" ");
  console.log(`load of the machine before: ${load()}`);
  try {
    return await work(postgres, folder);
  } finally {
    console.log(`load of the machine after: ${load()}`);
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A PostgreSQL of its own, and a generated chain behind a node in a process of its own, while `work` runs. */
export const withStage = <T>(
  { isCompressing = false, ...plan }: StagePlan,
  work: (stage: Stage) => Promise<T>,
): Promise<T> =>
  withPostgres(async (postgres, folder) => {
    const whole: ChainPlan = { perBlock: PER_BLOCK, endsAt: Math.floor(Date.now() / 1000), ...plan };
    const chain = generateChain(whole);
    const told = { PLAN: JSON.stringify(whole), COMPRESSING: isCompressing ? "1" : "" };
    const node = await startProgram("bench/index/rpc-server.ts", told);
    const [, rpcUrl = ""] = node.lines.at(-1)?.split(" ") ?? [];
    console.log(`${chain.last * chain.perBlock} transfers, ${chain.perBlock} a block`);
    try {
      return await work({ env: { DATABASE_URL: postgres.ownerUrl, BASE_RPC_URL: rpcUrl }, chain, folder });
    } finally {
      await stopProgram(node);
    }
  });
