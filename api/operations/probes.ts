import type pg from "pg";
import type { Logger } from "pino";
import type { LogFacts } from "../log/index.ts";
import type { Journal, UsdcState } from "../payments/index.ts";
import type { ChainReader } from "../platform/chain/chain.ts";
import type { NodeCheck } from "../platform/chain/failover.ts";
import type { Head } from "../platform/chain/view.ts";
import { late } from "../platform/clock.ts";
import { bytes, releaseProblem } from "../platform/db/connection.ts";
import type { IndexPosition } from "../platform/index/activity.ts";
import type { JobHealth } from "../platform/jobs/job-watch.ts";
import { MAIN_NETWORK, NETWORKS, type Network, type NetworkFacts } from "../platform/networks.ts";
import type { Sender } from "./schemas.ts";

/** The data sources of the status page and the metrics. Each method rejects if its part does not answer. */
export interface Probes {
  readonly networks: readonly Network[];
  readonly settlementMode: "in-process" | "remote";
  readonly senders: readonly Sender[];
  database(): Promise<void>;
  chain(network: Network): Promise<{ readonly block: number; readonly finalizedBlock: number; readonly time: bigint }>;
  /** Returns the chain's nodes in order of preference, each with its newest block. */
  nodes(network: Network): readonly NodeProbe[];
  /** Returns null until the first backfill has finished. */
  index(): Promise<IndexPosition | null>;
  sender(sender: Sender): Promise<SenderFacts>;
  /** Rejects if the remote facilitator is unreachable. The in-process one always is reachable. */
  facilitator(): Promise<void>;
  /** Returns null while unknown. */
  usdc(network: Network): UsdcState | null;
  payments(): Promise<{ readonly unresolved: number; readonly oldestSeconds: number | null }>;
  log(): Promise<LogFacts>;
  jobs(): readonly JobHealth[];
  /** Resolves to null after `ms` milliseconds, without keeping the process alive. */
  late(ms: number): Promise<null>;
}

export interface NodeProbe {
  /** Its position in the variable, counted from 1. */
  readonly rank: number;
  /** Rejects if this node does not answer or is not in use. */
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

export const createProbes = (parts: ProbeParts): Probes => ({
  networks: Object.keys(parts.chains) as Network[],
  settlementMode: parts.facilitator === null ? "in-process" : "remote",
  senders: parts.senders.map(({ role, network, address }) => ({ role, network, address })),
  async database() {
    await parts.pool.query("SELECT 1");
  },
  async chain(network) {
    const chain = parts.chains[network];
    const [head, finalizedBlock] = await Promise.all([chain.head(), chain.finalizedBlock()]);
    return { block: head.number, finalizedBlock, time: head.time };
  },
  nodes(network) {
    const { head, nodes } = parts.chains[network];
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
  index: parts.position,
  sender: (sender) => senderFacts(parts, sender),
  facilitator: parts.facilitator === null ? async () => undefined : cached(() => reach(parts.facilitator ?? "")),
  usdc: parts.usdc,
  payments: () => parts.journal.backlog(),
  log: parts.log,
  jobs: parts.jobs,
  late,
});

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
async function reach(url: string): Promise<void> {
  const response = await fetch(`${url.replace(/\/$/, "")}/supported`, {
    redirect: "error",
    signal: AbortSignal.timeout(FACILITATOR_TIMEOUT_MS),
  });
  await response.body?.cancel();
  if (response.status >= 500) throw new Error(`the facilitator returns status ${response.status}`);
}

function cached(ask: () => Promise<void>): () => Promise<void> {
  let asked: { readonly at: number; readonly answer: Promise<void> } | null = null;
  return () => {
    if (asked === null || performance.now() - asked.at > FACILITATOR_CACHE_MS)
      asked = { at: performance.now(), answer: ask() };
    return asked.answer;
  };
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
