import type { Hex } from "viem";
import { type DeliveryStore, type KeptDelivery, newLease } from "./delivery-store.ts";

interface Claimed {
  readonly resource: string;
  readonly lease: string;
  /** Milliseconds by the process's own clock. */
  readonly until: number;
}

export interface MemoryLimits {
  readonly deliveries: number;
  readonly bytes: number;
}

/**
 * Returns a delivery store in memory. Beyond the limits, the oldest decided delivery is dropped first, then the oldest.
 */
export function memoryStore(limits: MemoryLimits = { deliveries: 10_000, bytes: 64 * 1024 * 1024 }): DeliveryStore {
  const kept = new Map<Hex, KeptDelivery>();
  const claims = new Map<Hex, Claimed>();
  let bytes = 0;
  const drop = (id: Hex) => {
    bytes -= kept.get(id)?.body.length ?? 0;
    kept.delete(id);
    claims.delete(id);
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
    async claim(id, resource, leaseMs) {
      const earlier = claims.get(id);
      const bound = earlier?.resource ?? kept.get(id)?.resource ?? resource;
      if (bound !== resource || (earlier !== undefined && performance.now() < earlier.until)) {
        return { resource: bound, lease: null };
      }
      const lease = newLease();
      claims.set(id, { resource, lease, until: performance.now() + leaseMs });
      forgetOldest(claims, limits.deliveries);
      return { resource, lease };
    },
    async extend(id, lease, leaseMs) {
      const claimed = claims.get(id);
      if (claimed?.lease !== lease || performance.now() >= claimed.until) return false;
      claims.set(id, { ...claimed, until: performance.now() + leaseMs });
      return true;
    },
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

/** Drops claims whose lease ran out, oldest first, while there are more than `most`. */
function forgetOldest(claims: Map<Hex, Claimed>, most: number): void {
  if (claims.size <= most) return;
  for (const [id, { until }] of claims) {
    if (performance.now() >= until) claims.delete(id);
    if (claims.size <= most) return;
  }
}

/** Shared by all routes of this process, so that one payment cannot buy at two of them. */
export const sharedMemory: DeliveryStore = memoryStore();
