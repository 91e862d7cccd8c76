import type { Hex } from "viem";
import type { Delivery } from "../delivery.ts";
import type { Decision } from "../forward.ts";

/** A stored delivery, with the resource that it is for. */
export interface KeptDelivery extends Delivery {
  /** Method and path with its query, as bought. */
  readonly resource: string;
  /** The transaction of the hold. */
  readonly transaction: Hex;
  readonly decision: Ending | "pending";
}

/**
 * The outcome of a delivery. `ended`: the hold ended before the arbiter had it, so it is never returned to the buyer.
 */
export type Ending = Decision | "ended";

/** A request's right to make the delivery of a payment. */
export interface Claim {
  /** The first resource that the payment was claimed for. */
  readonly resource: string;
  /** Identifies the claim; null while another request has it, or if the payment buys another resource. */
  readonly lease: string | null;
}

/**
 * Stores deliveries by payment id, so that a payment buys one delivery and can fetch it again, and no handler runs
 * twice concurrently for it. If you run several processes, or sell goods that must not be made twice after a restart,
 * provide a shared store: `postgresStore`, `keyValueStore`, or your own. Every method is atomic, and rejects if the
 * store cannot be reached.
 */
export interface DeliveryStore {
  get(id: Hex): Promise<KeptDelivery | null>;
  /**
   * Ties a payment to a resource, once and permanently, and lets one caller make its delivery: no other caller gets a
   * lease for it in the next `leaseMs` milliseconds.
   */
  claim(id: Hex, resource: string, leaseMs: number): Promise<Claim>;
  /** Extends a lease to `leaseMs` milliseconds from now; false if it ran out and another caller may have one. */
  extend(id: Hex, lease: string, leaseMs: number): Promise<boolean>;
  /** Stores a delivery unless there already is one; returns the stored one. */
  keep(id: Hex, delivery: KeptDelivery): Promise<KeptDelivery>;
  /** Records the outcome of a delivery; does nothing if it is not stored. */
  decide(id: Hex, ending: Ending): Promise<void>;
}

/** Returns a unique name for a claim. */
export const newLease = (): string => crypto.randomUUID();
