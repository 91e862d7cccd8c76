import pg from "pg";
import { waitUntil } from "../../scripts/embedded/wait-until.ts";
import { type Program, startProgram, stopProgram } from "../programs.ts";
import type { ChainPlan } from "./generated-chain.ts";
import { INDEXER_SETTINGS } from "./indexer.ts";
import { generateLiveChain, type LiveChain } from "./live-chain.ts";
import { withPostgres } from "./stage.ts";

/** The indexer beside a PostgreSQL of its own and a chain that grows, each in processes of their own. */
export interface LiveStage {
  /** The same chain as the node's; it grows and is reorganized with it. */
  readonly chain: LiveChain;
  readonly db: pg.Pool;
  readonly folder: string;
  readonly env: Readonly<Record<"DATABASE_URL" | "BASE_RPC_URL", string>>;
  readonly postgresPid: number;
  /** Starts the indexer; resolves when it has said so, by default that its index is ready. */
  readonly start: (more?: Readonly<Record<string, string>>, ready?: RegExp) => Promise<void>;
  readonly stop: () => Promise<void>;
  readonly ponderPid: () => number;
  /** What the indexer has logged with this message. */
  readonly said: (message: string) => readonly Record<string, unknown>[];
  /** The chain's next blocks. */
  readonly grow: (blocks: number) => Promise<void>;
  readonly reorganize: (depth: number) => Promise<void>;
  /** Resolves when the views are at the chain's head. */
  readonly caughtUp: () => Promise<void>;
}

const PATIENCE_MS = 900_000;

interface LivePlan {
  readonly plan: ChainPlan;
  /** The newest block when the node starts. */
  readonly head: number;
}

export const withLiveStage = <T>({ plan, head }: LivePlan, work: (stage: LiveStage) => Promise<T>): Promise<T> =>
  withPostgres(async (postgres, folder) => {
    const db = new pg.Pool({ connectionString: postgres.ownerUrl, max: 2 });
    db.on("error", () => undefined);
    const told = { CHAIN_PLAN: JSON.stringify(plan), HEAD: String(head) };
    const node = await startProgram("bench/index/live-chain.ts", told);
    const [, rpcUrl = ""] = node.lines.at(-1)?.split(" ") ?? [];
    const env = { DATABASE_URL: postgres.ownerUrl, BASE_RPC_URL: rpcUrl };
    let indexer: Program | null = null;
    const stop = async () => {
      if (indexer !== null) await stopProgram(indexer);
      indexer = null;
    };
    const chain = generateLiveChain(plan, head);
    try {
      return await work({
        ...{ chain, db, folder, env, stop },
        ...controls(chain, { rpcUrl, db }),
        ...records(() => indexer?.lines ?? []),
        postgresPid: postgres.process.pid,
        async start(more = {}, ready = /"index ready"/) {
          indexer = await startProgram("scripts/indexer.ts", { ...INDEXER_SETTINGS, ...env, ...more }, { ready });
        },
      });
    } finally {
      await stop();
      await stopProgram(node);
      await db.end();
    }
  });

function controls(
  chain: LiveChain,
  { rpcUrl, db }: { readonly rpcUrl: string; readonly db: pg.Pool },
): Pick<LiveStage, "grow" | "reorganize" | "caughtUp"> {
  const tell = async (method: string, blocks: number) => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: [blocks] });
    const { ok } = await fetch(rpcUrl, { method: "POST", body });
    if (!ok) throw new Error(`the node did not take ${method}`);
  };
  return {
    async grow(blocks) {
      await tell("bench_grow", blocks);
      chain.grow(blocks);
    },
    async reorganize(depth) {
      await tell("bench_reorganize", depth);
      chain.reorganize(depth);
    },
    async caughtUp() {
      const isThere = async () =>
        (await db.query("select block::int from live.position")).rows[0]?.block === chain.head;
      if (!(await waitUntil(isThere, PATIENCE_MS))) throw new Error(`the index did not reach block ${chain.head}`);
    },
  };
}

function records(lines: () => readonly string[]): Pick<LiveStage, "said" | "ponderPid"> {
  const said = (message: string) =>
    lines()
      .filter((line) => line.includes(`"msg":"${message}"`))
      .map((line): Record<string, unknown> => JSON.parse(line));
  return { said, ponderPid: () => Number(said("ponder started").at(-1)?.ponderPid) };
}
