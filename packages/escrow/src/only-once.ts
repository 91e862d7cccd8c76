import type { Hex } from "viem";
import type { DeliveryStore, KeptDelivery } from "./stores/delivery-store.ts";

/** The time for which a dead process keeps others from making its delivery. */
const LEASE_MS = 60_000;
/** The time that a request waits for a delivery that another one is making. */
const WAIT_MS = 25_000;
const FIRST_LOOK_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

export type DeliveryClaim =
  /** The caller makes the delivery. */
  | { readonly type: "ours"; readonly lease: string }
  /** The delivery exists. */
  | { readonly type: "made"; readonly kept: KeptDelivery }
  /** The payment was claimed for something else. */
  | { readonly type: "other"; readonly resource: string }
  /** Another request is still making it. */
  | { readonly type: "busy" };

/** Waits until a delivery is the caller's to make, or exists; at most 25 seconds. */
export async function claimDelivery(store: DeliveryStore, id: Hex, resource: string): Promise<DeliveryClaim> {
  const until = performance.now() + WAIT_MS;
  for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    const claim = await store.claim(id, resource, LEASE_MS);
    if (claim.resource !== resource) return { type: "other", resource: claim.resource };
    // The previous lease holder may have stored it just now.
    const kept = await store.get(id);
    if (kept !== null) return { type: "made", kept };
    if (claim.lease !== null) return { type: "ours", lease: claim.lease };
    if (performance.now() + pauseMs > until) return { type: "busy" };
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

export interface Leased {
  readonly id: Hex;
  readonly lease: string;
  readonly log: (message: string, cause?: unknown) => void;
}

/** Does work that may take longer than a lease, extending the lease until it is done. */
export async function whileLeased<T>(
  store: DeliveryStore,
  { id, lease, log }: Leased,
  work: () => Promise<T>,
): Promise<T> {
  const lost = (cause: unknown) => log(`The lease of payment ${id} was not extended.`, cause);
  const extend = () =>
    void store.extend(id, lease, LEASE_MS).then((isOurs) => isOurs || lost("Another request has it."), lost);
  const timer = setInterval(extend, LEASE_MS / 3);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}
