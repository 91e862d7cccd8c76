import type { PublicClient } from "viem";
import { isDeployed } from "./settlement-batch.ts";

const LOOK_AGAIN_MS = 600_000;

interface Watch {
  readonly log: { warn(facts: object, message: string): void };
  /** Hears what has been found. */
  readonly told: (isGood: boolean) => void;
}

/** Whether batches may be sent. Without the contract, and after a batch that reverted, payments go alone for ten minutes. */
export function watchContract(client: PublicClient, { log, told }: Watch) {
  let known: { readonly until: number; readonly good: Promise<boolean> } | null = null;
  const look = async () => {
    const isGood = await isDeployed(client);
    told(isGood);
    if (!isGood) log.warn({}, "the settlement contract is not deployed: payments settle one by one");
    else known = { until: Number.POSITIVE_INFINITY, good: Promise.resolve(true) };
    return isGood;
  };
  return {
    isGood: (): Promise<boolean> => {
      if (known === null || performance.now() >= known.until) {
        known = { until: performance.now() + LOOK_AGAIN_MS, good: look() };
        // A node that cannot be asked is asked again.
        known.good.catch(() => {
          known = null;
        });
      }
      return known.good;
    },
    /** A batch was mined and reverted, which no payment in it can bring about. */
    distrust: (): void => {
      log.warn({}, "a batch reverted: payments settle one by one for ten minutes");
      told(false);
      known = { until: performance.now() + LOOK_AGAIN_MS, good: Promise.resolve(false) };
    },
  };
}
