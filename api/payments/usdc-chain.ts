import { readAtBlock } from "../platform/chain/read-at-block.ts";
import { usdcCalls } from "../platform/chain/usdc.ts";
import type { Terms } from "../platform/http/route.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import type { Job, Platform } from "../platform/slice.ts";
import type { Address } from "../platform/wallet.ts";

/** The parts of USDC that its issuer can switch off. */
export interface UsdcState {
  readonly isPaused: boolean;
  readonly isReceiverBlacklisted: boolean;
}

export type UsdcWatch = ReturnType<typeof createUsdcWatch>;

const EVERY_MS = 10_000;
/** An older reading does not count, because its node may be down. */
const KNOWN_FOR_MS = 60_000;

interface Seen extends UsdcState {
  readonly at: number;
}

/** Watches whether the service can receive USDC, so that no payer signs a payment that cannot settle. */
export function createUsdcWatch({ chains, log }: Pick<Platform, "chains" | "log">, payTo: Address) {
  const seen = new Map<Network, Seen>();
  const ask = async (network: Network): Promise<UsdcState> => {
    const { isPaused, isBlacklisted } = usdcCalls(NETWORKS[network].usdc.address);
    const [paused, blacklisted] = [isPaused(), isBlacklisted(payTo)];
    const { of } = await readAtBlock(chains[network].client, { calls: [paused, blacklisted] });
    return { isPaused: of(paused), isReceiverBlacklisted: of(blacklisted) };
  };
  const look = async (network: Network): Promise<void> => {
    // Other monitoring reports a node that is down or has no USDC.
    const now = await ask(network).catch(() => null);
    if (now === null) return;
    const before = seen.get(network);
    seen.set(network, { ...now, at: performance.now() });
    const reason = reasonOf(network, now);
    if (reason !== null && (before === undefined || reasonOf(network, before) !== reason))
      log.error({ network }, `payments are paused: ${reason}`);
    if (reason === null && before !== undefined && reasonOf(network, before) !== null)
      log.info({ network }, "USDC can be paid again");
  };
  /** Null while unknown. */
  const state = (network: Network): UsdcState | null => {
    const found = seen.get(network);
    return found === undefined || performance.now() - found.at > KNOWN_FOR_MS ? null : found;
  };
  return {
    state,
    /** Why a payment on these terms cannot settle at the moment, in sentences; null if no obstacle is known. */
    closed(terms: Pick<Terms, "network" | "payTo">): string | null {
      const found = state(terms.network);
      if (found === null) return null;
      const isOther = terms.payTo.toLowerCase() !== payTo.toLowerCase();
      return reasonOf(terms.network, isOther ? { ...found, isReceiverBlacklisted: false } : found);
    },
    jobs: Object.values(NETWORKS).map(
      ({ id, key }): Job => ({ name: `usdc ${key}`, everyMs: EVERY_MS, run: () => look(id) }),
    ),
  };
}

function reasonOf(network: Network, { isPaused, isReceiverBlacklisted }: UsdcState): string | null {
  const { name } = NETWORKS[network];
  if (isPaused) return `USDC on ${name} is paused by its issuer, so no payment can settle. Try again later.`;
  return isReceiverBlacklisted
    ? `USDC on ${name} refuses to pay the service's receiving address, which its issuer has put on the blacklist, so no payment can settle.`
    : null;
}
