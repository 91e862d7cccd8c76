import type pg from "pg";
import { waitUntil } from "../../../scripts/embedded/wait-until.ts";
import { startTestChain, type TestChain } from "../chain/chain.ts";
import type { HoldingNode } from "../chain/holding-node.ts";
import { type ApiProcess, type ApiProcessPlan, SHARED_RELAYER, startApiProcess } from "./api-process.ts";
import { connectOwner, freshDatabase, type TestDatabase } from "./database.ts";
import { eachPayment } from "./row-by-row.ts";

const BLOCKED_LIMIT_MS = 30_000;

export const fundRelayer = (chain: TestChain): Promise<void> => chain.setBalance(SHARED_RELAYER, 10n ** 20n);

/** Real chains and a real database under any number of API processes. */
export interface ApiStage<Chain extends TestChain = TestChain> {
  readonly chain: Chain;
  readonly database: TestDatabase;
  /** The owner's connection, for inspection; it never holds a lock. */
  readonly owner: pg.Client;
  /** Starts an API process that reads the chain through the node. */
  readonly start: (node: Pick<HoldingNode, "url">, env?: ApiProcessPlan["env"]) => Promise<ApiProcess>;
  /** What the end of a 30-second lease does. Live leases end too: only speed depends on them. */
  readonly endLeases: () => Promise<void>;
  /** Until a statement with this prefix waits for a lock. */
  readonly untilBlocked: (statement: string) => Promise<void>;
  /** From now on, a commit of a row of this table waits while someone holds advisory lock 1. */
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
      // It locks the rows of several statements of the service at once, in no particular order.
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
