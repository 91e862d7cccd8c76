import { VERSION } from "../platform/about.ts";
import { late } from "../platform/clock.ts";
import type { IndexPosition } from "../platform/index/activity.ts";
import type { JobHealth } from "../platform/jobs/job-watch.ts";
import { MAIN_NETWORK, NETWORKS, type Network } from "../platform/networks.ts";
import { logStatus } from "./log-status.ts";
import type { NodeProbe, Probes } from "./probes.ts";
import type { ChainStatus, Sender, SenderStatus, Status } from "./schemas.ts";

/** A part that does not answer within this time counts as down. */
export const PATIENCE_MS = 3_000;
/** An index or chain that lags further behind is unhealthy. */
const MAX_LAG_SECONDS = 120;
/** Gas for about 100 settlements. Below this, settlement is about to stop. */
const LOW_BALANCE_WEI = 50_000_000_000_000n;
const OLD_PAYMENT_SECONDS = 600;
/** A transaction that waits longer is not just queued behind others. */
const OLD_TRANSACTION_SECONDS = 300;

const orNull = <T>(work: Promise<T>): Promise<T | null> => Promise.race([work.catch(() => null), late(PATIENCE_MS)]);

const secondsSince = (then: Date, now: Date): number =>
  Math.max(0, Math.round((now.getTime() - then.getTime()) / 1000));

/** All requests within this time share one check, because the status is public, and some nodes bill per call. */
const RECENT_MS = 2_000;

/** Returns the status, checked again once it is two seconds old. */
export function recentStatus(probes: Probes, now: () => Date): () => Promise<Status> {
  let recent: Promise<Status> | null = null;
  return () => {
    if (recent === null) {
      recent = serviceStatus(probes, now());
      void recent
        .catch(() => undefined)
        .then(() => late(RECENT_MS))
        .then(() => {
          recent = null;
        });
    }
    return recent;
  };
}

/** The facts that only nodes and a remote facilitator know. */
export interface ChainFacts {
  readonly chains: ChainStatus[];
  readonly senders: SenderStatus[];
  readonly isFacilitatorThere: boolean;
}

/** The facts while they are unknown. */
const UNKNOWN: ChainFacts = { chains: [], senders: [], isFacilitatorThere: false };

/** Reads the facts from the nodes and the facilitator, once. */
export async function chainFacts(probes: Probes, now: Date): Promise<ChainFacts> {
  const [chains, senders, facilitator] = await Promise.all([
    Promise.all(probes.networks.map((network) => chainStatus(probes, network, now))),
    Promise.all(probes.senders.map((sender) => senderStatus(probes, sender))),
    orNull(probes.facilitator()),
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
): Promise<Status> {
  const [database, known, position, payments, logFacts] = await Promise.all([
    orNull(probes.database().then(() => true)),
    facts,
    orNull(probes.index()),
    orNull(probes.payments()),
    orNull(probes.log()),
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
    checked_at: now.toISOString(),
    version: VERSION,
    database: { ok: database === true },
    chains,
    usdc,
    indexer,
    settlement,
    senders,
    jobs: jobs.map(({ name, ok, runs, failures, lastSuccessAt }) => ({
      ...{ name, ok, runs, failures },
      last_success_at: lastSuccessAt?.toISOString() ?? null,
    })),
    log,
    payments: { unresolved: payments?.unresolved ?? 0, oldest_unresolved_seconds: oldest },
  };
}

/** Whether the service needs the network. Without a node of the other one, everything else works. */
const isNeeded = ({ network }: { readonly network: Network }): boolean => network === MAIN_NETWORK;

const isNeededJob = ({ name }: JobHealth): boolean =>
  Object.values(NETWORKS).every(({ id, key }) => id === MAIN_NETWORK || !name.endsWith(` ${key}`));

function usdcStatus(probes: Probes, network: Network): Status["usdc"][number] {
  const { isPaused: paused = null, isReceiverBlacklisted: barred = null } = probes.usdc(network) ?? {};
  return { network, ok: paused !== true && barred !== true, paused, receiver_blacklisted: barred };
}

function indexerOf(position: IndexPosition | null, now: Date): Status["indexer"] {
  if (position === null)
    return { ok: false, ready: false, block: null, lag_seconds: null, reason: "the index is not ready" };
  const { block, timestamp } = position;
  const lagSeconds = secondsSince(timestamp, now);
  const reason = lagSeconds > MAX_LAG_SECONDS ? `it is ${lagSeconds} seconds behind` : null;
  return { ok: reason === null, ready: true, block, lag_seconds: lagSeconds, reason };
}

/** Settlement on Base: through our own account there, or the remote facilitator. */
function settlementOf(
  { settlementMode: mode }: Probes,
  senders: readonly SenderStatus[],
  isFacilitatorThere: boolean,
): Status["settlement"] {
  const account = senders.find(({ role, network }) => role === "facilitator" && network === MAIN_NETWORK);
  if (account === undefined) return { ok: isFacilitatorThere, mode };
  const { ok, address, balance_wei } = account;
  return { ok, mode, address, ...(balance_wei === null ? {} : { balance_wei }) };
}

async function senderStatus(probes: Probes, sender: Sender): Promise<SenderStatus> {
  const found = await orNull(probes.sender(sender));
  if (found === null)
    return { ...sender, ok: false, balance_wei: null, cost_wei: null, unmined: null, oldest_unmined_seconds: null };
  const { balanceWei, costWei, unmined, oldestUnminedSeconds: oldest } = found;
  const ok = balanceWei > LOW_BALANCE_WEI && (oldest ?? 0) <= OLD_TRANSACTION_SECONDS;
  const [balance_wei, cost_wei] = [String(balanceWei), String(costWei)];
  return { ...sender, ok, balance_wei, cost_wei, unmined, oldest_unmined_seconds: oldest };
}

async function chainStatus(probes: Probes, network: Network, now: Date): Promise<ChainStatus> {
  const [seen, nodes] = await Promise.all([
    orNull(probes.chain(network)),
    Promise.all(probes.nodes(network).map((node) => nodeStatus(node, now))),
  ]);
  if (seen === null) return { network, ok: false, block: null, finalized_block: null, lag_seconds: null, nodes };
  const { ok, lag_seconds } = lagOf(seen.time, now);
  return { network, ok, block: seen.block, finalized_block: seen.finalizedBlock, lag_seconds, nodes };
}

async function nodeStatus({ rank, head }: NodeProbe, now: Date): Promise<ChainStatus["nodes"][number]> {
  const seen = await orNull(head());
  if (seen === null) return { rank, ok: false, block: null, lag_seconds: null };
  const { ok, lag_seconds } = lagOf(seen.time, now);
  return { rank, ok, block: seen.number, lag_seconds };
}

function lagOf(time: bigint, now: Date) {
  const lag_seconds = secondsSince(new Date(Number(time) * 1000), now);
  return { ok: lag_seconds <= MAX_LAG_SECONDS, lag_seconds };
}
