import type { Hex } from "viem";
import type { Delivery } from "./delivery.ts";
import type { Decision } from "./forward.ts";

/** A delivery that was made, and what for. */
export interface KeptDelivery extends Delivery {
  /** Method and path with its query: what was bought. */
  readonly resource: string;
  /** The transaction of the hold. */
  readonly transaction: Hex;
  readonly decision: Ending | "pending";
}

/** What became of a delivery. `ended`: the hold ended before the arbiter had it, so it is never given out. */
export type Ending = Decision | "ended";

/**
 * Stores deliveries by payment id, so that a payment buys one and gets it again. If you run several processes, or sell
 * goods that must not be made twice after a restart, provide a shared store.
 */
export interface DeliveryStore {
  get(id: Hex): Promise<KeptDelivery | null>;
  /** Stores it unless there already is one; returns the stored one. */
  keep(id: Hex, delivery: KeptDelivery): Promise<KeptDelivery>;
  /** Records what became of it; does nothing if it is not stored. */
  decide(id: Hex, ending: Ending): Promise<void>;
}

export interface MemoryLimits {
  readonly deliveries: number;
  readonly bytes: number;
}

/** Stores them in memory. Past the limits, the oldest decided one is dropped first, then the oldest. */
export function memoryStore(limits: MemoryLimits = { deliveries: 10_000, bytes: 64 * 1024 * 1024 }): DeliveryStore {
  const kept = new Map<Hex, KeptDelivery>();
  let bytes = 0;
  const drop = (id: Hex) => {
    bytes -= kept.get(id)?.body.length ?? 0;
    kept.delete(id);
  };
  const makeRoom = () => {
    while (kept.size > limits.deliveries || bytes > limits.bytes) {
      const decided = [...kept].find(([, { decision }]) => decision !== "pending");
      const oldest = decided ?? [...kept][0];
      if (oldest === undefined) return;
      drop(oldest[0]);
    }
  };
  return {
    get: async (id) => kept.get(id) ?? null,
    async keep(id, delivery) {
      const earlier = kept.get(id);
      if (earlier !== undefined) return earlier;
      kept.set(id, delivery);
      bytes += delivery.body.length;
      makeRoom();
      return delivery;
    },
    async decide(id, ending) {
      const delivery = kept.get(id);
      if (delivery !== undefined) kept.set(id, { ...delivery, decision: ending });
    },
  };
}

/** Shared by all routes of this process, so that one payment cannot buy at two of them. */
export const sharedMemory: DeliveryStore = memoryStore();
