import type { Network } from "../kernel/networks.ts";
import type { Probes } from "./ports.ts";
import type { ChainStatus, ServiceStatus } from "./status.ts";

export const VERSION = "1.0.0";
/** A part that does not answer in this time counts as down. */
const PATIENCE_MS = 3_000;
/** An index or chain further behind than this is not healthy. */
const MAX_LAG_SECONDS = 120;
/** Gas for about a hundred settlements; below it settlement is about to stop. */
const LOW_BALANCE_WEI = 50_000_000_000_000n;
const OLD_PAYMENT_SECONDS = 600;

const orNull = async <T>(work: Promise<T>): Promise<T | null> => {
  const late = new Promise<null>((resolve) => setTimeout(resolve, PATIENCE_MS, null).unref());
  return Promise.race([work.catch(() => null), late]);
};

const secondsSince = (then: Date, now: Date): number =>
  Math.max(0, Math.round((now.getTime() - then.getTime()) / 1000));

/** Looks at every part once; parts that do not answer are reported, never thrown. */
export async function serviceStatus(probes: Probes, now: Date): Promise<ServiceStatus> {
  const [database, chains, position, relayer, payments] = await Promise.all([
    orNull(probes.database().then(() => true)),
    Promise.all(probes.networks.map((network) => chainStatus(probes, network, now))),
    orNull(probes.index()),
    orNull(probes.relayer().then((found) => ({ found }))),
    orNull(probes.payments()),
  ]);
  const indexLag = position === null ? null : secondsSince(position.timestamp, now);
  const indexer = {
    ok: indexLag !== null && indexLag <= MAX_LAG_SECONDS,
    ready: position !== null,
    block: position?.block ?? null,
    lagSeconds: indexLag,
  };
  const account = relayer?.found ?? null;
  const settlement = {
    ok: relayer !== null && (account === null || account.balanceWei > LOW_BALANCE_WEI),
    mode: probes.settlementMode,
    ...(account === null ? {} : { address: account.address, balanceWei: account.balanceWei }),
  };
  const oldest = payments?.oldestSeconds ?? null;
  const healthy =
    database === true &&
    chains.every(({ ok }) => ok) &&
    indexer.ok &&
    settlement.ok &&
    (oldest === null || oldest < OLD_PAYMENT_SECONDS);
  return {
    ok: healthy,
    checkedAt: now,
    version: VERSION,
    database: { ok: database === true },
    chains,
    indexer,
    settlement,
    payments: { unresolved: payments?.unresolved ?? 0, oldestUnresolvedSeconds: oldest },
  };
}

async function chainStatus(probes: Probes, network: Network, now: Date): Promise<ChainStatus> {
  const seen = await orNull(probes.chain(network));
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
