import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { freePort } from "../../scripts/embedded/ports.ts";
import { grantRoles, type Postgres, startPostgres } from "../../scripts/embedded/postgres.ts";
import { waitUntil } from "../../scripts/embedded/wait-until.ts";
import { migrate } from "../../scripts/migrate.ts";
import {
  type ChainPlan,
  type GeneratedChain,
  generateChain,
  SERVICE,
} from "../../test/support/indexer/generated-chain.ts";
import { type Program, startProgram, stopProgram } from "../programs.ts";

const PATIENCE_MS = 3_600_000;

/** PostgreSQL, a node with a generated chain that grows, and the indexer, in separate processes. */
export interface World {
  readonly postgres: Postgres;
  readonly db: pg.Pool;
  /** The whole chain, including blocks that the node does not show yet. */
  readonly chain: GeneratedChain;
  /** A folder for files, removed at the end. */
  readonly folder: string;
  /** The environment of the indexer and the preload. */
  readonly env: Readonly<Record<string, string>>;
  readonly start: () => Promise<void>;
  /** Resolves when the indexer reports that readers have the index. */
  readonly ready: () => Promise<void>;
  readonly stop: () => Promise<void>;
  /** Adds the chain's next blocks. */
  readonly grow: (blocks: number) => Promise<void>;
  /** Resolves when the views are at the chain's head. */
  readonly caughtUp: () => Promise<void>;
}

export interface WorldPlan extends ChainPlan {
  readonly scope: "full" | "selective";
  /** The node's newest block at its start. Defaults to the whole chain. */
  readonly head?: number;
  readonly history?: string;
}

export async function inIndexWorld<T>(plan: WorldPlan, work: (world: World) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "bench-index-"));
  chmodSync(folder, 0o711);
  const postgres = await startPostgres({
    ...{ directory: join(folder, "postgres"), port: await freePort() },
    settings: ["shared_buffers=512MB", "max_wal_size=4GB"],
  });
  await migrate(postgres.ownerUrl);
  await grantRoles(postgres.ownerUrl);
  const db = new pg.Pool({ connectionString: postgres.ownerUrl, max: 2 });
  db.on("error", () => undefined);
  const chain = generateChain(plan);
  let head = plan.head ?? chain.head;
  const node = await startProgram("test/support/indexer/rpc-server.ts", {
    CHAIN_PLAN: JSON.stringify(plan),
    HEAD: String(head),
  });
  const [, rpcUrl = ""] = node.lines.at(-1)?.split(" ") ?? [];
  const env = {
    ...{ DATABASE_URL: postgres.indexerUrl, BASE_RPC_URL: rpcUrl, PAY_TO_ADDRESS: SERVICE, START_BLOCK: "1" },
    ...{ INDEX_SCOPE: plan.scope, INDEX_VIEWS_SCHEMA: "live", INDEX_HISTORY: plan.history ?? "" },
    // As many requests per second as the node accepts.
    ...{ RPC_COPIES: "25", POLL_MS: "250" },
  };
  let indexer: Program | null = null;
  const stop = async () => {
    if (indexer !== null) await stopProgram(indexer);
    indexer = null;
  };
  const isThere = () =>
    db.query("select block::int from live.position").then(
      ({ rows }) => rows[0]?.block === head,
      // The views do not exist until the index is ready.
      () => false,
    );
  try {
    return await work({
      ...{ postgres, db, chain, folder, env, stop },
      async start() {
        indexer = await startProgram("scripts/indexer.ts", env, { ready: null });
      },
      async ready() {
        if (
          !(await waitUntil(() => indexer?.lines.some((line) => line.includes('"index ready"')) === true, PATIENCE_MS))
        )
          throw new Error("the index did not become ready");
      },
      async grow(blocks) {
        const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "bench_grow", params: [blocks] });
        const { ok } = await fetch(rpcUrl, { method: "POST", body });
        if (!ok) throw new Error("the node did not take new blocks");
        head += blocks;
      },
      async caughtUp() {
        if (!(await waitUntil(isThere, PATIENCE_MS))) throw new Error(`the index did not reach block ${head}`);
      },
    });
  } finally {
    await stop();
    await stopProgram(node);
    await db.end();
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Plans a chain of 90 days that ends now, for an index made from a file. */
export const historyOf = (transfers: number): WorldPlan => ({
  ...{ transfers, perBlock: 100, endsAt: Math.floor(Date.now() / 1_000), scope: "full", history: "history" },
});

/** Returns the size on disk of all tables and indexes in the schemas that match a pattern. */
export async function bytesOf(db: pg.Pool, pattern: string): Promise<number> {
  const { rows } = await db.query<{ bytes: number }>(
    `select coalesce(sum(pg_total_relation_size(c.oid)), 0)::float8 as bytes
      from pg_class c join pg_namespace n on n.oid = relnamespace where nspname ~ $1 and relkind = 'r'`,
    [pattern],
  );
  return rows[0]?.bytes ?? Number.NaN;
}
