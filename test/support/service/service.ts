import { randomBytes } from "node:crypto";
import type pg from "pg";
import { type Logger, pino } from "pino";
import { type Config, parseConfig } from "../../../api/platform/config/config.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { createPrunings } from "../../../api/platform/db/prunings.ts";
import { createHttpServer, listen } from "../../../api/platform/http/server.ts";
import { runJobs } from "../../../api/platform/jobs/run-jobs.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { createService, type Service } from "../../../api/service.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import type { TestChain } from "../chain/chain.ts";
import { checkAgainstDescription, forgetService } from "../openapi/answers.ts";
import { freshDatabase, type TestDatabase } from "./database.ts";
import { ARBITER_KEY, PAY_TO } from "./environment.ts";
import { noteProblem } from "./problems.ts";

export interface TestServicePlan {
  readonly chain: TestChain;
  readonly database?: TestDatabase;
  readonly now?: () => Date;
  readonly config?: Partial<Config>;
  /** The time a request waits for its settlement, for tests where many do not settle. */
  readonly patienceMs?: number;
  /** The delay of a late answer in the retry safety test, in milliseconds. */
  readonly lateMs?: number;
  /** Whether the resolver and the relayer's upkeep run. Default true. */
  readonly jobs?: boolean;
}

export interface TestService {
  readonly url: string;
  readonly config: Config;
  readonly database: TestDatabase;
  /** Every method and path that is mounted. */
  readonly mounted: readonly { readonly method: string; readonly path: string }[];
  /** Everything logged, one JSON text per line. */
  readonly logged: readonly string[];
  readonly gate: Service["gate"];
  /** The recurring work on withheld signatures and decoys, run on demand. */
  readonly upkeep: Service["upkeep"];
  /** Runs a job once. @throws if there is no job with that name */
  readonly runJob: (name: string) => Promise<unknown>;
  /** Runs one pass over the publications in ERC-8004's registries. @throws if they are off */
  readonly publish: () => Promise<number>;
  readonly stop: () => Promise<void>;
}

/** The real service in this process: real PostgreSQL, a real chain, its own HTTP port. */
export async function startService(plan: TestServicePlan): Promise<TestService> {
  const database = plan.database ?? (await freshDatabase());
  const port = await freePort();
  const config = { ...environment(port, database, plan.chain), ...plan.config };
  await plan.chain.setBalance(RELAYER.address, 10n ** 20n);
  const { log, logged } = recordingLog();
  const pool = connect(config.databaseUrl);
  const { app, gate, jobs, watch, upkeep } = await createService(config, pool, {
    log,
    access: log,
    now: plan.now,
    patienceMs: plan.patienceMs,
    lateMs: plan.lateMs,
    // The arbiter retries immediately. Its waiting time is tested where it is decided.
    wait: async () => undefined,
  });
  const servers = [createHttpServer(app.fetch), createHttpServer(app.fetch)];
  await listen(servers, port, "localhost");
  checkAgainstDescription(config.baseUrl);
  const stopJobs = plan.jobs === false ? async () => undefined : runJobs(jobs, { watch, log });
  const runJob = async (wanted: string): Promise<unknown> => {
    const job = jobs.find(({ name }) => name === wanted);
    if (job === undefined) throw new Error(`there is no job ${wanted} here`);
    return job.run();
  };
  return {
    url: config.baseUrl,
    config,
    database,
    // Hono also lists its middleware, as separate methods.
    mounted: app.routes.flatMap(({ method, path, handler }) =>
      ["GET", "POST"].includes(method)
        ? [{ method, path: "tablePath" in handler ? `${handler.tablePath}` : path }]
        : [],
    ),
    logged,
    gate,
    upkeep,
    runJob,
    publish: async () => Number(await runJob("erc8004")),
    async stop() {
      forgetService(config.baseUrl);
      for (const server of servers) server.close();
      for (const server of servers) server.closeAllConnections();
      await stopJobs();
      await gate.drain();
      await pool.end();
    },
  };
}

/** Every payment settles in a separate transaction, which is estimated before it is signed. */
export const ALONE = { batches: { most: 1, waitMs: 100 } } as const;

/** The key of the in-process facilitator, an account with no other use. */
export const RELAYER = { key: `0x${"5e".repeat(32)}`, address: "0xd8291e50e2e68fb2c70d77ccdc707d291a89f209" } as const;

function environment(port: number, database: TestDatabase, chain: TestChain): Config {
  const config = parseConfig({
    PORT: String(port),
    HOST: "localhost",
    DATABASE_URL: database.apiUrl,
    ...Object.fromEntries(Object.values(NETWORKS).map(({ rpcVariable }) => [rpcVariable, chain.rpcUrl])),
    FACILITATOR_PRIVATE_KEY: RELAYER.key,
    PAY_TO_ADDRESS: PAY_TO,
    SIGNING_KEY: randomBytes(32).toString("base64url"),
    SEALING_KEY: randomBytes(32).toString("base64url"),
    DECOY_SEED: randomBytes(32).toString("base64url"),
    ARBITER_PRIVATE_KEY: ARBITER_KEY,
    RATE_LIMIT_PER_MINUTE: "0",
  });
  if ("problem" in config) throw new Error(config.problem);
  return config;
}

function recordingLog(): { log: Logger; logged: string[] } {
  const logged: string[] = [];
  const write = (line: string): void => {
    logged.push(line);
    noteProblem(line);
  };
  return { logged, log: pino({ level: "debug" }, { write }) };
}

/** Runs every pruning once. Returns the number of deleted rows. */
export async function prune(pool: pg.Pool): Promise<number> {
  let pruned = 0;
  for (const some of createPrunings(pool)) pruned += await some();
  return pruned;
}
