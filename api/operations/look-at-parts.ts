import { VERSION } from "../platform/about.ts";
import type { IndexPosition } from "../platform/index/position.ts";
import { MAIN_NETWORK, type Network } from "../platform/networks.ts";
import { logStatus } from "./log-status.ts";
import type { Probes } from "./probes.ts";
import type { ChainStatus, Sender, SenderStatus, ServiceStatus } from "./status.ts";

/** A part that does not answer within this time counts as down. */
const PATIENCE_MS = 3_000;
/** An index or chain that lags further behind is unhealthy. */
const MAX_LAG_SECONDS = 120;
/** Gas for about a hundred settlements; below this, settlement is about to stop. */
const LOW_BALANCE_WEI = 50_000_000_000_000n;
const OLD_PAYMENT_SECONDS = 600;
/** A transaction that waits longer is not just queued behind others. */
const OLD_TRANSACTION_SECONDS = 300;

const orNull = <T>({ late }: Probes, work: Promise<T>): Promise<T | null> =>
  Promise.race([work.catch(() => null), late(PATIENCE_MS)]);

const secondsSince = (then: Date, now: Date): number =>
  Math.max(0, Math.round((now.getTime() - then.getTime()) / 1000));

/** One look serves everyone who asks within this time: the status is public, and asks nodes that bill by the call. */
const RECENT_MS = 2_000;

/** The status, looked at again once it is two seconds old. */
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

/** Looks at every part once. Parts that do not answer are reported, never thrown. */
export async function serviceStatus(probes: Probes, now: Date): Promise<ServiceStatus> {
  const [database, chains, position, senders, facilitator, payments, logFacts] = await Promise.all([
    orNull(
      probes,
      probes.database().then(() => true),
    ),
    Promise.all(probes.networks.map((network) => chainStatus(probes, network, now))),
    orNull(probes, probes.index()),
    Promise.all(probes.senders.map((sender) => senderStatus(probes, sender))),
    orNull(
      probes,
      probes.facilitator().then(() => true),
    ),
    orNull(probes, probes.payments()),
    orNull(probes, probes.log()),
  ]);
  const log = logStatus(logFacts, now);
  const indexer = indexerOf(position, now);
  const settlement = settlementOf(probes, senders, facilitator === true);
  const jobs = probes.jobs();
  const oldest = payments?.oldestSeconds ?? null;
  const healthy =
    database === true &&
    [...chains, indexer, settlement, ...senders, ...jobs].every(({ ok }) => ok) &&
    log?.ok !== false &&
    (oldest === null || oldest < OLD_PAYMENT_SECONDS);
  return {
    ok: healthy,
    checkedAt: now,
    version: VERSION,
    database: { ok: database === true },
    chains,
    indexer,
    settlement,
    senders,
    jobs,
    log,
    payments: { unresolved: payments?.unresolved ?? 0, oldestUnresolvedSeconds: oldest },
  };
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
  const seen = await orNull(probes, probes.chain(network));
  if (seen === null) return { network, ok: false, block: null, finalizedBlock: null, lagSeconds: null };
  const lagSeconds = secondsSince(new Date(Number(seen.time) * 1000), now);
  return {
    network,
    ok: lagSeconds <= MAX_LAG_SECONDS,
    block: seen.block,
    finalizedBlock: seen.finalizedBlock,
    lagSeconds,
  };
}
