import type pg from "pg";
import type { Logger } from "pino";
import type { LogFacts } from "../log/index.ts";
import type { Journal, UsdcState } from "../payments/index.ts";
import { createRecent } from "../platform/chain/batcher.ts";
import type { ChainReader } from "../platform/chain/chain.ts";
import type { NodeCheck } from "../platform/chain/failover.ts";
import type { Head } from "../platform/chain/view.ts";
import { bytes, releaseProblem } from "../platform/db/connection.ts";
import type { IndexPosition } from "../platform/index/activity.ts";
import type { JobHealth } from "../platform/jobs/job-watch.ts";
import { MAIN_NETWORK, NETWORKS, type Network, type NetworkFacts } from "../platform/networks.ts";
import type { Sender } from "./schemas.ts";

export interface NodeProbe {
  /** Its position in the variable, counted from 1. */
  readonly rank: number;
  readonly head: () => Promise<Head>;
}

export interface SenderFacts {
  readonly balanceWei: bigint;
  /** The current cost of sending an ordinary payment. */
  readonly costWei: bigint;
  /** The number of transactions not in a block yet. */
  readonly unmined: number;
  /** The age of the oldest unmined transaction; null if there is none. */
  readonly oldestUnminedSeconds: number | null;
}

export interface ProbeParts {
  readonly pool: pg.Pool;
  readonly chains: Readonly<Record<Network, ChainReader>>;
  readonly senders: readonly (Sender & { readonly costWei: () => Promise<bigint> })[];
  /** The URL of the remote facilitator; null for the in-process one. */
  readonly facilitator: string | null;
  readonly journal: Journal;
  readonly usdc: (network: Network) => UsdcState | null;
  readonly position: () => Promise<IndexPosition | null>;
  readonly log: () => Promise<LogFacts>;
  readonly jobs: () => readonly JobHealth[];
}

const FACILITATOR_TIMEOUT_MS = 2_500;
/** The status is public, so it calls third parties at most this often. */
const FACILITATOR_CACHE_MS = 10_000;

/** The transactions sent with a nonce that the chain has not reached yet. */
const UNMINED = `SELECT count(*)::int AS unmined, extract(epoch FROM now() - min(created_at))::int AS oldest
  FROM relay WHERE chain = $1 AND sender = $2 AND state = 'sent' AND nonce >= $3`;

export type Probes = ReturnType<typeof createProbes>;

/** Creates the data sources of the status page and the metrics. Each method rejects if its part does not answer. */
export function createProbes(parts: ProbeParts) {
  const { pool, chains, facilitator, usdc, journal, log, jobs } = parts;
  const recent = createRecent<boolean>(FACILITATOR_CACHE_MS);
  return {
    networks: Object.keys(chains) as Network[],
    settlementMode: facilitator === null ? ("in-process" as const) : ("remote" as const),
    senders: parts.senders.map(({ role, network, address }): Sender => ({ role, network, address })),
    database: async () => void (await pool.query("SELECT 1")),
    async chain(network: Network) {
      const chain = chains[network];
      const [head, finalizedBlock] = await Promise.all([chain.head(), chain.finalizedBlock()]);
      return { block: head.number, finalizedBlock, time: head.time };
    },
    /** Returns the chain's nodes in order of preference. The head of one that is not in use rejects. */
    nodes(network: Network): readonly NodeProbe[] {
      const { head, nodes } = chains[network];
      // A single node shares the head that is read anyway.
      if (nodes.list.length === 1) return [{ rank: 1, head }];
      return nodes.list.map(({ rank, state, client }) => ({
        rank,
        async head() {
          if (state() !== "ready") throw new Error(`node ${rank} is ${state()}`);
          const { number, timestamp } = await client.getBlock();
          return { number: Number(number), time: timestamp };
        },
      }));
    },
    /** Returns null until the first backfill has finished. */
    index: parts.position,
    sender: (sender: Sender) => senderFacts(parts, sender),
    /** Whether the remote facilitator is reachable. The in-process one always is. */
    facilitator: async () =>
      facilitator === null || recent(facilitator, () => isReachable(facilitator).catch(() => false)),
    /** Returns null while unknown. */
    usdc,
    payments: () => journal.backlog(),
    log,
    jobs,
  };
}

async function senderFacts({ pool, chains, senders }: ProbeParts, sender: Sender): Promise<SenderFacts> {
  const { network, address } = sender;
  const { client } = chains[network];
  const own = senders.find((one) => one.network === network && one.address === address);
  const [balanceWei, mined, costWei = 0n] = await Promise.all([
    client.getBalance({ address }),
    client.getTransactionCount({ address }),
    own?.costWei(),
  ]);
  const values = [NETWORKS[network].chainId, bytes(address), mined];
  const { rows } = await pool.query<{ unmined: number; oldest: number | null }>({
    name: "relay-unmined",
    text: UNMINED,
    values,
  });
  return { balanceWei, costWei, unmined: rows[0]?.unmined ?? 0, oldestUnminedSeconds: rows[0]?.oldest ?? null };
}

/** Every x402 facilitator lists its payment kinds at `/supported`. */
async function isReachable(url: string): Promise<boolean> {
  const response = await fetch(`${url.replace(/\/$/, "")}/supported`, {
    redirect: "error",
    signal: AbortSignal.timeout(FACILITATOR_TIMEOUT_MS),
  });
  await response.body?.cancel();
  return response.status < 500;
}

/**
 * Returns what is wrong with the database, or null. The service's role must not be able to change permanent records.
 */
export async function checkDatabase(pool: pg.Pool): Promise<string | null> {
  try {
    const old = await releaseProblem(pool);
    if (old !== null) return old;
    const { rows } = await pool.query<{ table: string | null; may_change: boolean | null }>(
      `SELECT to_regclass('certificate')::text AS table, has_table_privilege(to_regclass('certificate')::oid, 'UPDATE, DELETE, TRUNCATE') AS may_change`,
    );
    if (rows[0]?.table === null)
      return "The database has no schema. Run `npm run migrate` with the owner's DATABASE_URL first.";
    if (rows[0]?.may_change) {
      return "The role in DATABASE_URL can change or delete certificates. Use a login role that is a member of only trust_api: CREATE ROLE trust LOGIN PASSWORD '…' IN ROLE trust_api.";
    }
    return null;
  } catch (error) {
    return `The database in DATABASE_URL cannot be used: ${(error as Error).message}`;
  }
}

interface ChainCheck {
  readonly log: Pick<Logger, "info" | "warn" | "error">;
  /** Ends the process, because a node that did not answer at the start belongs to another chain. */
  readonly end: (problem: string) => void;
}

/**
 * Returns what is wrong with the chains, or null. A node of another chain would settle no payment. A node that does not
 * answer does not prevent the start, but is not used until its chain id has been read. Only the main network's node
 * prevents it.
 */
export async function checkChains(
  chains: Readonly<Record<Network, Pick<ChainReader, "nodes">>>,
  { log, end }: ChainCheck,
): Promise<string | null> {
  const problems = await Promise.all(
    Object.values(NETWORKS).map(async (facts) => {
      const { nodes } = chains[facts.id];
      const judge = (found: NodeCheck): string | null => {
        const problem = problemOf(facts, nodes.list.length, found);
        const isMain = facts.id === MAIN_NETWORK;
        if (problem !== null && !isMain) log.error({ problem }, "a node of the other network is not used");
        return isMain ? problem : null;
      };
      const checked = await nodes.check((found) => {
        const problem = judge(found);
        if (problem !== null) end(problem);
        else if (found.chainId === facts.chainId)
          log.info({ network: facts.key, node: found.rank }, "a node responds again");
      });
      for (const { rank, chainId } of checked)
        if (chainId === null)
          log.warn({ network: facts.key, node: rank, variable: facts.rpcVariable }, "a node is not responding");
      return checked.map(judge);
    }),
  );
  return problems.flat().find((problem) => problem !== null) ?? null;
}

function problemOf({ rpcVariable, chainId }: NetworkFacts, nodes: number, found: NodeCheck): string | null {
  if (found.chainId === null || found.chainId === chainId) return null;
  const which = nodes === 1 ? rpcVariable : `URL ${found.rank} of ${rpcVariable}`;
  return `${which} is a node of chain ${found.chainId}; expected chain ${chainId}.`;
}
