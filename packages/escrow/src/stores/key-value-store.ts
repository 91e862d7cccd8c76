import type { Hex } from "viem";
import { decodeBytes, encodeBytes } from "../bytes.ts";
import { type DeliveryStore, type Ending, type KeptDelivery, newLease } from "./delivery-store.ts";

/**
 * The operations needed from a store like Redis or Valkey. With `redis` of npm:
 * `get: (key) => redis.get(key)`,
 * `setIfAbsent: async (key, value, forMs) => (await redis.set(key, value, { NX: true, PX: forMs })) === "OK"`,
 * `expire: async (key, forMs) => void (await redis.pExpire(key, forMs))`.
 */
export interface KeyValue {
  get(key: string): Promise<string | null>;
  /** Sets a key that does not exist, for `forMs` milliseconds; false if it exists. Atomic. */
  setIfAbsent(key: string, value: string, forMs: number): Promise<boolean>;
  /** Makes a key expire `forMs` milliseconds from now. */
  expire(key: string, forMs: number): Promise<void>;
}

/** The time for which deliveries are stored: longer than any payment can wait for its release. */
const KEPT_MS = 3 * 24 * 3_600_000;

/** Returns a delivery store in a store like Redis, for any number of processes; `prefix` starts every key. */
export function keyValueStore(store: KeyValue, prefix = "escrow"): DeliveryStore {
  const keyOf = (id: Hex, part: "resource" | "lease" | "delivery" | "decision") => `${prefix}:{${id}}:${part}`;
  const get = async (id: Hex): Promise<KeptDelivery | null> => {
    const [text, decision] = await Promise.all([store.get(keyOf(id, "delivery")), store.get(keyOf(id, "decision"))]);
    if (text === null) return null;
    const { body, ...delivery } = JSON.parse(text);
    return { ...delivery, body: decodeBytes(body), decision: decision ?? delivery.decision };
  };
  return {
    get,
    async claim(id, resource, leaseMs) {
      await store.setIfAbsent(keyOf(id, "resource"), resource, KEPT_MS);
      const bound = (await store.get(keyOf(id, "resource"))) ?? resource;
      const lease = newLease();
      const isOurs = bound === resource && (await store.setIfAbsent(keyOf(id, "lease"), lease, leaseMs));
      return { resource: bound, lease: isOurs ? lease : null };
    },
    async extend(id, lease, leaseMs) {
      if ((await store.get(keyOf(id, "lease"))) !== lease) return false;
      // If the lease ran out just now, this extends another one, which is harmless.
      await store.expire(keyOf(id, "lease"), leaseMs);
      return (await store.get(keyOf(id, "lease"))) === lease;
    },
    async keep(id, { body, ...delivery }) {
      await store.setIfAbsent(keyOf(id, "resource"), delivery.resource, KEPT_MS);
      await store.setIfAbsent(keyOf(id, "delivery"), JSON.stringify({ ...delivery, body: encodeBytes(body) }), KEPT_MS);
      const kept = await get(id);
      if (kept === null) throw new Error(`The delivery of payment ${id} was stored but is gone.`);
      return kept;
    },
    async decide(id, ending: Ending) {
      if ((await store.get(keyOf(id, "delivery"))) === null) return;
      await store.setIfAbsent(keyOf(id, "decision"), ending, KEPT_MS);
    },
  };
}
