import type { Context } from "hono";
import type { z } from "zod";
import type { Atomic } from "./money.ts";
import type { Network } from "./networks.ts";
import type { Transaction } from "./transaction.ts";
import type { Address, Hex } from "./wallet.ts";

interface RouteFacts {
  /** A path as Hono reads it, like `/cert/:id`. */
  readonly path: string;
  readonly summary: string;
}

/** A route that anyone may call without payment. */
export interface FreeRoute extends RouteFacts {
  readonly method: "GET" | "POST";
  readonly handle: (context: Context) => Response | Promise<Response>;
}

/** A route that answers once its payment has settled on the chain. */
export interface PaidRoute<Input = unknown> extends RouteFacts {
  readonly method: "POST";
  /** Stable name in the journal: a stored payment finds its route again by it. */
  readonly id: string;
  readonly network: Network;
  readonly price: Atomic;
  readonly description: string;
  /** A custom issue is a refusal (422); any other is a malformed body (400). */
  readonly input: z.ZodType<Input>;
  /** What to send and what comes back, for discovery. */
  readonly example: {
    readonly input: Readonly<Record<string, unknown>>;
    readonly output: Readonly<Record<string, unknown>>;
  };
  /** Shown in the menu of tests when the route is one. */
  readonly menu?: MenuFacts;
  /** Total: an unfavourable result is an answer too. It may run more than once; only the first one recorded counts. */
  readonly sell: (sale: Sale<Input>) => Promise<Outcome>;
}

export interface MenuFacts {
  readonly capability: string;
  readonly totalCost: Atomic;
  readonly steps: readonly string[];
  readonly howToRun: string;
}

export type Route = FreeRoute | PaidRoute;

export const isPaid = (route: Route): route is PaidRoute => "price" in route;

/** A payment that the canonical chain shows as settled, and the request that it bought. */
export interface Sale<Input> {
  readonly input: Input;
  readonly payment: PaymentKey;
  readonly version: "v1" | "v2";
  readonly payTo: Address;
  readonly value: Atomic;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly receivedAt: Date;
  readonly settlement: { readonly transaction: Hex; readonly block: number };
  readonly signal: AbortSignal;
}

/** What identifies an authorization: (network, asset, payer, nonce). Record ids derive from it. */
export interface PaymentKey {
  readonly network: Network;
  readonly asset: Address;
  readonly payer: Address;
  readonly nonce: Hex;
}

/** The answer of a sale. `record` runs in the transaction that stores the answer. */
export interface Outcome {
  readonly status: number;
  readonly body: unknown;
  /** Path of the public record that the sale made, if any. */
  readonly location: string | null;
  readonly record: (transaction: Transaction) => Promise<void>;
}

/** Keeps the input's type while a route is written, and forgets it in the table: the gate hands `sell` what `input` parsed. */
export const paidRoute = <Input>(route: PaidRoute<Input>): PaidRoute => route as unknown as PaidRoute;
