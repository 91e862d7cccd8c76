import { fileURLToPath } from "node:url";
import type pg from "pg";
import { privateKeyToAccount } from "viem/accounts";
import { startGuarded } from "../../../scripts/embedded/guarded-process.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { startTestChain, type TestChain } from "../chain/chain.ts";
import type { HoldingNode } from "../chain/nodes.ts";
import { checkAgainstDescription, forgetService } from "../openapi/answers.ts";
import { waitUntil } from "../wait-until.ts";
import { connectOwner, eachPayment, freshDatabase, type TestDatabase } from "./database.ts";
import { ARBITER_KEY, bareEnvironment, PAY_TO } from "./environment.ts";

const API = fileURLToPath(new URL("../../../api/main.ts", import.meta.url));
const RELAYER_KEY = `0x${"6f".repeat(32)}` as const;
const START_LIMIT_MS = 60_000;
const START_ATTEMPTS = 3;

export interface ApiProcessPlan {
  readonly database: TestDatabase;
  readonly baseRpcUrl: string;
  readonly baseSepoliaRpcUrl: string;
  /** Additional or replacement environment variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** Replaces `api/main.ts`. */
  readonly program?: string;
  /** The file for its complete output. */
  readonly logFile?: string;
}

/** The API as in production, in a separate process. It never outlives the test that started it. */
export interface ApiProcess {
  readonly url: string;
  readonly pid: number;
  /** The end of its output. */
  readonly output: () => string;
  /** The exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
  /** Kills it with SIGKILL, so it cannot finish or report anything. */
  readonly kill: () => Promise<void>;
  /** Suspends it without its knowledge until `thaw`. */
  readonly freeze: () => void;
  readonly thaw: () => void;
  readonly stop: () => Promise<void>;
}

/** Starts `api/main.ts` and waits until it listens. Processes on one database share their keys. */
export async function startApiProcess(plan: ApiProcessPlan): Promise<ApiProcess> {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    const { logFile, program = API } = plan;
    const child = await startGuarded({
      command: process.execPath,
      args: [program],
      env: environment(plan, port),
      ...(logFile === undefined ? {} : { logFile }),
    });
    const listening = () => child.lastOutput().includes('"msg":"listening"');
    await waitUntil(() => listening() || !child.running(), START_LIMIT_MS);
    const signal = (name: NodeJS.Signals) => {
      if (child.running()) process.kill(child.pid, name);
    };
    const kill = async () => {
      signal("SIGKILL");
      await child.ended;
    };
    if (child.running() && listening()) {
      const url = `http://localhost:${port}`;
      checkAgainstDescription(url);
      child.ended.then(() => forgetService(url));
      return {
        url,
        pid: child.pid,
        output: child.lastOutput,
        ended: child.ended,
        kill,
        freeze: () => signal("SIGSTOP"),
        thaw: () => signal("SIGCONT"),
        stop: () => child.stop(),
      };
    }
    await kill();
    // Another program may have taken a port that was free a moment ago.
    if (attempt === START_ATTEMPTS || !/cannot be used \(EADDRINUSE\)/.test(child.lastOutput()))
      throw new Error(`The API did not start. ${child.lastOutput().trim()}`);
  }
}

const environment = ({ database, baseRpcUrl, baseSepoliaRpcUrl, env }: ApiProcessPlan, port: number) => ({
  ...bareEnvironment(),
  PORT: String(port),
  HOST: "localhost",
  DATABASE_URL: database.apiUrl,
  BASE_RPC_URL: baseRpcUrl,
  BASE_SEPOLIA_RPC_URL: baseSepoliaRpcUrl,
  FACILITATOR_PRIVATE_KEY: RELAYER_KEY,
  PAY_TO_ADDRESS: PAY_TO,
  SIGNING_KEY: Buffer.alloc(32, 1).toString("base64url"),
  SEALING_KEY: Buffer.alloc(32, 2).toString("base64url"),
  DECOY_SEED: Buffer.alloc(32, 3).toString("base64url"),
  ARBITER_PRIVATE_KEY: ARBITER_KEY,
  RATE_LIMIT_PER_MINUTE: "0",
  ...env,
});

/** The in-process facilitator of every process. */
export const SHARED_RELAYER = privateKeyToAccount(RELAYER_KEY).address;

const BLOCKED_LIMIT_MS = 30_000;

export const fundRelayer = (chain: TestChain): Promise<void> => chain.setBalance(SHARED_RELAYER, 10n ** 20n);

/** Real chains and a real database under any number of API processes. */
export interface ApiStage<Chain extends TestChain = TestChain> {
  readonly chain: Chain;
  readonly database: TestDatabase;
  /** The owner's connection, for inspection. It never holds a lock. */
  readonly owner: pg.Client;
  /** Starts an API process that reads the chain through the node. */
  readonly start: (node: Pick<HoldingNode, "url">, env?: ApiProcessPlan["env"]) => Promise<ApiProcess>;
  /** Ends all leases, as after 30 seconds. Live leases end too, which affects only speed. */
  readonly endLeases: () => Promise<void>;
  /** Waits until a statement with this prefix waits for a lock. */
  readonly untilBlocked: (statement: string) => Promise<void>;
  /** From now on, a commit of a row of this table waits while a session holds advisory lock 1. */
  readonly lockCommitsOf: (table: string) => Promise<void>;
  /** Kills every process started here. */
  readonly stop: () => Promise<void>;
}

const END_LEASES = eachPayment("lease_until = '-infinity'", "lease_until > now()");

const DEADLOCK = "40P01";

const BLOCKED =
  "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE $1";

const lockCommits = (table: string) => `
  CREATE FUNCTION wait_at_commit() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END $$;
  CREATE CONSTRAINT TRIGGER wait_at_commit AFTER INSERT ON ${table}
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait_at_commit()`;

export const startApiStage = (): Promise<ApiStage> => startApiStageOn(startTestChain());

export async function startApiStageOn<Chain extends TestChain>(starting: Promise<Chain>): Promise<ApiStage<Chain>> {
  const [chain, sepolia, database] = await Promise.all([
    starting,
    startTestChain({ network: "eip155:84532" }),
    freshDatabase(),
  ]);
  await fundRelayer(chain);
  const owner = await connectOwner(database);
  const processes: ApiProcess[] = [];
  return {
    chain,
    database,
    owner,
    async start(node, env = {}) {
      const plan = { database, baseRpcUrl: node.url, baseSepoliaRpcUrl: sepolia.rpcUrl, env };
      const started = await startApiProcess(plan);
      processes.push(started);
      return started;
    },
    async endLeases() {
      // Retries, because it locks the rows of several of the service's statements in no particular order.
      for (let isOver = false; !isOver; ) {
        isOver = await owner.query(END_LEASES).then(
          () => true,
          (error: pg.DatabaseError) => {
            if (error.code !== DEADLOCK) throw error;
            return false;
          },
        );
      }
    },
    async untilBlocked(statement) {
      const blocked = async () => (await owner.query(BLOCKED, [`${statement}%`])).rowCount === 1;
      if (!(await waitUntil(blocked, BLOCKED_LIMIT_MS, 10)))
        throw new Error(`nothing waits for a lock in ${statement}`);
    },
    lockCommitsOf: async (table) => void (await owner.query(lockCommits(table))),
    async stop() {
      await Promise.all(processes.map((one) => one.kill()));
      await owner.end();
      await Promise.all([chain.stop(), sepolia.stop()]);
    },
  };
}
