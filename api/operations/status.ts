import { VERSION } from "../platform/about.ts";
import type { IndexPosition } from "../platform/index/activity.ts";
import type { JobHealth } from "../platform/jobs/job-watch.ts";
import { MAIN_NETWORK, NETWORKS, type Network } from "../platform/networks.ts";
import { type LogStatus, logDocument, logStatus } from "./log-status.ts";
import type { NodeProbe, Probes } from "./probes.ts";

export interface ChainStatus {
  readonly network: Network;
  readonly ok: boolean;
  /** Null while the chain does not answer. */
  readonly block: number | null;
  readonly finalizedBlock: number | null;
  /** Age of the newest block. */
  readonly lagSeconds: number | null;
  readonly nodes: readonly NodeStatus[];
}

/** One of several nodes, in order of preference. */
export interface NodeStatus {
  /** Its position in the variable, counted from 1. */
  readonly rank: number;
  readonly ok: boolean;
  /** Null while the node does not answer. */
  readonly block: number | null;
  readonly lagSeconds: number | null;
}

/** Whether the service can receive USDC; null means unknown. */
export interface UsdcStatus {
  readonly network: Network;
  readonly ok: boolean;
  readonly isPaused: boolean | null;
  readonly isReceiverBlacklisted: boolean | null;
}

/** An account whose transactions the service sends and pays gas for. */
export interface Sender {
  readonly role: "facilitator" | "arbiter";
  readonly network: Network;
  readonly address: string;
}

export interface SenderStatus extends Sender {
  readonly ok: boolean;
  /** Null, like the next three, while the chain or the database does not answer. */
  readonly balanceWei: bigint | null;
  /** The current cost of sending an ordinary payment. */
  readonly costWei: bigint | null;
  /** The number of transactions not in a block yet. */
  readonly unmined: number | null;
  /** Also null if there are none. */
  readonly oldestUnminedSeconds: number | null;
}

/** The result of the service's last check of its parts. */
export interface ServiceStatus {
  readonly ok: boolean;
  readonly checkedAt: Date;
  readonly version: string;
  readonly database: { readonly ok: boolean };
  readonly chains: readonly ChainStatus[];
  readonly usdc: readonly UsdcStatus[];
  readonly indexer: {
    readonly ok: boolean;
    readonly ready: boolean;
    /** Null until the first backfill has finished. */
    readonly block: number | null;
    readonly lagSeconds: number | null;
    /** Why the index counts as unavailable; null if it does not. */
    readonly reason: string | null;
  };
  readonly settlement: {
    readonly ok: boolean;
    readonly mode: "in-process" | "remote";
    readonly address?: string;
    readonly balanceWei?: bigint;
  };
  readonly senders: readonly SenderStatus[];
  /** The recurring jobs of the answering process. */
  readonly jobs: readonly JobHealth[];
  /** Null while the database does not answer. */
  readonly log: LogStatus | null;
  readonly payments: {
    /** Payments whose outcome is still unknown. */
    readonly unresolved: number;
    readonly oldestUnresolvedSeconds: number | null;
  };
}

/** Returns the status as its JSON document: names in snake_case, time in ISO 8601, wei as decimal text. */
export const statusDocument = (status: ServiceStatus) => ({
  ok: status.ok,
  checked_at: status.checkedAt.toISOString(),
  version: status.version,
  database: { ok: status.database.ok },
  chains: status.chains.map(({ network, ok, block, finalizedBlock, lagSeconds, nodes }) => ({
    network,
    ok,
    block,
    finalized_block: finalizedBlock,
    lag_seconds: lagSeconds,
    nodes: nodes.map((node) => ({ rank: node.rank, ok: node.ok, block: node.block, lag_seconds: node.lagSeconds })),
  })),
  usdc: status.usdc.map(({ network, ok, isPaused, isReceiverBlacklisted }) => ({
    network,
    ok,
    paused: isPaused,
    receiver_blacklisted: isReceiverBlacklisted,
  })),
  indexer: {
    ok: status.indexer.ok,
    ready: status.indexer.ready,
    block: status.indexer.block,
    lag_seconds: status.indexer.lagSeconds,
    reason: status.indexer.reason,
  },
  settlement: {
    ok: status.settlement.ok,
    mode: status.settlement.mode,
    ...(status.settlement.address !== undefined && { address: status.settlement.address }),
    ...(status.settlement.balanceWei !== undefined && { balance_wei: status.settlement.balanceWei.toString() }),
  },
  senders: status.senders.map(({ role, network, address, ok, balanceWei, costWei, unmined, oldestUnminedSeconds }) => ({
    role,
    network,
    address,
    ok,
    balance_wei: balanceWei?.toString() ?? null,
    cost_wei: costWei?.toString() ?? null,
    unmined,
    oldest_unmined_seconds: oldestUnminedSeconds,
  })),
  jobs: status.jobs.map(({ name, ok, runs, failures, lastSuccessAt }) => ({
    name,
    ok,
    runs,
    failures,
    last_success_at: lastSuccessAt?.toISOString() ?? null,
  })),
  log: logDocument(status.log),
  payments: {
    unresolved: status.payments.unresolved,
    oldest_unresolved_seconds: status.payments.oldestUnresolvedSeconds,
  },
});

/** A part that does not answer within this time counts as down. */
export const PATIENCE_MS = 3_000;
/** An index or chain that lags further behind is unhealthy. */
const MAX_LAG_SECONDS = 120;
/** Gas for about 100 settlements. Below this, settlement is about to stop. */
const LOW_BALANCE_WEI = 50_000_000_000_000n;
const OLD_PAYMENT_SECONDS = 600;
/** A transaction that waits longer is not just queued behind others. */
const OLD_TRANSACTION_SECONDS = 300;

const orNull = <T>({ late }: Probes, work: Promise<T>): Promise<T | null> =>
  Promise.race([work.catch(() => null), late(PATIENCE_MS)]);

const secondsSince = (then: Date, now: Date): number =>
  Math.max(0, Math.round((now.getTime() - then.getTime()) / 1000));

/** All requests within this time share one check, because the status is public, and some nodes bill per call. */
const RECENT_MS = 2_000;

/** Returns the status, checked again once it is two seconds old. */
export function recentStatus(probes: Probes, now: () => Date): () => Promise<ServiceStatus> {
  let recent: Promise<ServiceStatus> | null = null;
  return () => {
    if (recent === null) {
      recent = serviceStatus(probes, now());
      void recent
        .catch(() => undefined)
        .then(() => probes.late(RECENT_MS))
        .then(() => {
          recent = null;
        });
    }
    return recent;
  };
}

/** The facts that only nodes and a remote facilitator know. */
export interface ChainFacts {
  readonly chains: readonly ChainStatus[];
  readonly senders: readonly SenderStatus[];
  readonly isFacilitatorThere: boolean;
}

/** The facts while they are unknown. */
const UNKNOWN: ChainFacts = { chains: [], senders: [], isFacilitatorThere: false };

/** Reads the facts from the nodes and the facilitator, once. */
export async function chainFacts(probes: Probes, now: Date): Promise<ChainFacts> {
  const [chains, senders, facilitator] = await Promise.all([
    Promise.all(probes.networks.map((network) => chainStatus(probes, network, now))),
    Promise.all(probes.senders.map((sender) => senderStatus(probes, sender))),
    orNull(
      probes,
      probes.facilitator().then(() => true),
    ),
  ]);
  return { chains, senders, isFacilitatorThere: facilitator === true };
}

/**
 * Checks every part once. Parts that do not answer are reported, never thrown.
 * @param facts null while unknown; never rejects
 */
export async function serviceStatus(
  probes: Probes,
  now: Date,
  facts: Promise<ChainFacts | null> = chainFacts(probes, now),
): Promise<ServiceStatus> {
  const [database, known, position, payments, logFacts] = await Promise.all([
    orNull(
      probes,
      probes.database().then(() => true),
    ),
    facts,
    orNull(probes, probes.index()),
    orNull(probes, probes.payments()),
    orNull(probes, probes.log()),
  ]);
  const { chains, senders, isFacilitatorThere } = known ?? UNKNOWN;
  const log = logStatus(logFacts, now);
  const indexer = indexerOf(position, now);
  const settlement = settlementOf(probes, senders, isFacilitatorThere);
  const jobs = probes.jobs();
  const usdc = probes.networks.map((network) => usdcStatus(probes, network));
  const oldest = payments?.oldestSeconds ?? null;
  const healthy =
    database === true &&
    known !== null &&
    [...[...chains, ...usdc, ...senders].filter(isNeeded), indexer, settlement, ...jobs.filter(isNeededJob)].every(
      ({ ok }) => ok,
    ) &&
    log?.ok !== false &&
    (oldest === null || oldest < OLD_PAYMENT_SECONDS);
  return {
    ok: healthy,
    checkedAt: now,
    version: VERSION,
    database: { ok: database === true },
    chains,
    usdc,
    indexer,
    settlement,
    senders,
    jobs,
    log,
    payments: { unresolved: payments?.unresolved ?? 0, oldestUnresolvedSeconds: oldest },
  };
}

/** Whether the service needs the network. Without a node of the other one, everything else works. */
const isNeeded = ({ network }: { readonly network: Network }): boolean => network === MAIN_NETWORK;

const isNeededJob = ({ name }: JobHealth): boolean =>
  Object.values(NETWORKS).every(({ id, key }) => id === MAIN_NETWORK || !name.endsWith(` ${key}`));

function usdcStatus(probes: Probes, network: Network): UsdcStatus {
  const { isPaused = null, isReceiverBlacklisted = null } = probes.usdc(network) ?? {};
  return { network, ok: isPaused !== true && isReceiverBlacklisted !== true, isPaused, isReceiverBlacklisted };
}

function indexerOf(position: IndexPosition | null, now: Date): ServiceStatus["indexer"] {
  if (position === null)
    return { ok: false, ready: false, block: null, lagSeconds: null, reason: "the index is not ready" };
  const { block, timestamp } = position;
  const lagSeconds = secondsSince(timestamp, now);
  const reason = lagSeconds > MAX_LAG_SECONDS ? `it is ${lagSeconds} seconds behind` : null;
  return { ok: reason === null, ready: true, block, lagSeconds, reason };
}

/** Settlement on Base: through our own account there, or the remote facilitator. */
function settlementOf(
  { settlementMode: mode }: Probes,
  senders: readonly SenderStatus[],
  isFacilitatorThere: boolean,
): ServiceStatus["settlement"] {
  const account = senders.find(({ role, network }) => role === "facilitator" && network === MAIN_NETWORK);
  if (account === undefined) return { ok: isFacilitatorThere, mode };
  const { ok, address, balanceWei } = account;
  return { ok, mode, address, ...(balanceWei === null ? {} : { balanceWei }) };
}

async function senderStatus(probes: Probes, sender: Sender): Promise<SenderStatus> {
  const found = await orNull(probes, probes.sender(sender));
  if (found === null)
    return { ...sender, ok: false, balanceWei: null, costWei: null, unmined: null, oldestUnminedSeconds: null };
  const { balanceWei, oldestUnminedSeconds } = found;
  const ok = balanceWei > LOW_BALANCE_WEI && (oldestUnminedSeconds ?? 0) <= OLD_TRANSACTION_SECONDS;
  return { ...sender, ok, ...found };
}

async function chainStatus(probes: Probes, network: Network, now: Date): Promise<ChainStatus> {
  const [seen, nodes] = await Promise.all([
    orNull(probes, probes.chain(network)),
    Promise.all(probes.nodes(network).map((node) => nodeStatus(probes, node, now))),
  ]);
  if (seen === null) return { network, ok: false, block: null, finalizedBlock: null, lagSeconds: null, nodes };
  const { block, finalizedBlock } = seen;
  return { network, block, finalizedBlock, ...lagOf(seen.time, now), nodes };
}

async function nodeStatus(probes: Probes, { rank, head }: NodeProbe, now: Date): Promise<NodeStatus> {
  const seen = await orNull(probes, head());
  if (seen === null) return { rank, ok: false, block: null, lagSeconds: null };
  return { rank, block: seen.number, ...lagOf(seen.time, now) };
}

function lagOf(time: bigint, now: Date): { readonly ok: boolean; readonly lagSeconds: number } {
  const lagSeconds = secondsSince(new Date(Number(time) * 1000), now);
  return { ok: lagSeconds <= MAX_LAG_SECONDS, lagSeconds };
}
