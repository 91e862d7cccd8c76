import type { Context } from "hono";
import type { z } from "zod";
import type { Completion, RecordedAnswer } from "./completion.ts";
import type { ProblemCode } from "./errors.ts";
import type { FieldError } from "./field-error.ts";
import type { Atomic } from "./money.ts";
import type { Network } from "./networks.ts";
import type { Output, Parameter } from "./output.ts";
import type { Address, Hex } from "./wallet.ts";

interface RouteFacts {
  /** A path as Hono reads it, like `/cert/:id`. */
  readonly path: string;
  readonly summary: string;
  /** What it answers with status 200. */
  readonly output: Output;
  /** Of its path and query. */
  readonly parameters?: readonly Parameter[];
  /** The JSON body as callers are told of it; that of a paid route is its `input`, unless this says more. */
  readonly body?: z.ZodType;
  /** Its own problems; those that every route of its kind may answer with are not named. */
  readonly problems?: readonly ProblemCode[];
}

/** A route that anyone may call without payment. */
export interface FreeRoute extends RouteFacts {
  readonly method: "GET" | "POST";
  /** The largest body that it takes, where it is not the usual one. */
  readonly maxBodyBytes?: number;
  /** What it answers with another status, problems aside. */
  readonly others?: Readonly<Record<number, Output>>;
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
  /** The payment schemes that it takes, by name, the preferred one first; `exact` alone unless it says otherwise. */
  readonly schemes?: readonly [string, ...string[]];
  /** Who sells, where it is not the service under its receiving address. */
  readonly seller?: Address;
  /** Why it is not for sale on this installation, as one sentence; absent where it is. */
  readonly closed?: string;
  /** Members of the body that may stand in the query instead. */
  readonly query?: readonly string[];
  /** A custom issue is a refusal (422); any other is a malformed body (400). */
  readonly input: z.ZodType<Input>;
  /** What else can only be asked of a chain or an index before anything is charged; it runs once the signature is found good. */
  readonly intake?: (input: Input) => Promise<Intake<Input>>;
  /** What to send and what comes back, for discovery. */
  readonly example: {
    readonly input: Readonly<Record<string, unknown>>;
    readonly output: Readonly<Record<string, unknown>> | readonly unknown[];
  };
  /** Shown in the menu of tests when the route is one. */
  readonly menu?: MenuFacts;
  /** Total: an unfavourable result is an answer too. It may run more than once; only the first one recorded counts. */
  readonly sell: (sale: Sale<Input>) => Promise<Completion>;
}

/** A request as it is taken in, why it is refused (422), or what cannot be asked at the moment (503). */
export type Intake<Input> =
  | { readonly input: Input }
  | { readonly refused: readonly FieldError[] }
  | { readonly unavailable: string };

/** What is to be paid: USDC on a network, to one seller, exactly so many atomic units. */
export interface Terms {
  readonly network: Network;
  readonly payTo: Address;
  readonly value: Atomic;
}

/** One 402: the terms, and how they are presented. */
export interface Offer {
  readonly terms: Terms;
  /** The path that is paid for, with its query. */
  readonly resource: string;
  readonly description: string;
  readonly maxTimeoutSeconds: number;
}

/** A route that quotes every call anew; what a payment was signed for decides what it buys. */
export interface QuotedRoute extends RouteFacts {
  readonly method: "POST";
  readonly description: string;
  /** What may be sold here; the journal finds them again by their ids. */
  readonly sales: readonly PaidRoute[];
  /** Throws a Problem when there is nothing to quote. */
  readonly quote: (context: Context) => Promise<Quotation>;
}

export interface Quotation {
  /** The terms of an unpaid call. */
  offer(): Promise<Offer>;
  /** The terms of the call before this one, when a payment was signed for none that were offered. */
  repeat(): Offer;
  /** What a payment was signed for; null when it was not offered. Throws a Problem when this payer is offered nothing. */
  match(signed: { readonly from: Address; readonly to: Address; readonly value: bigint }): Match | null;
}

export interface Match {
  readonly offer: Offer;
  readonly route: PaidRoute;
  /** What is bought, in short: the same payment for another purchase is another request. */
  readonly purchase: string;
  /** Known to the service alone: two payments of one purchase are told apart by it. Null when it has none. */
  readonly paymentId: string | null;
  readonly input: unknown;
  /** Why no new payment is taken any more; null while they are. */
  readonly over: string | null;
  /** Present when the payment is answered at once and never submitted to anyone. Total, like `sell`. */
  readonly withhold?: (withheld: Withheld) => RecordedAnswer;
}

/** A payment that is answered and never submitted. */
export interface Withheld extends Omit<Sale<unknown>, "settlement" | "signal" | "input"> {
  /** EIP-712. */
  readonly digest: Hex;
}

/** Thrown while an answer is recorded when there is nothing left to buy: everything is rolled back. */
export class Over extends Error {}

export interface MenuFacts {
  readonly capability: string;
  readonly totalCost: Atomic;
  readonly steps: readonly string[];
  readonly howToRun: string;
}

export type Route = FreeRoute | PaidRoute | QuotedRoute;

/** The schemes that a route takes. */
export const schemesOf = ({ schemes }: Pick<PaidRoute, "schemes">): readonly [string, ...string[]] =>
  schemes ?? ["exact"];

/** A route as the table holds it, with the part of the service that it belongs to. */
export type Listed = Route & { readonly tag: Tag };

export type Tag = "Certification" | "Risk score" | "Arbiter" | "Escrow" | "Café" | "Board" | "Keys" | "Discovery";

export const isPaid = (route: Route): route is PaidRoute => "price" in route;

export const isQuoted = (route: Route): route is QuotedRoute => "quote" in route;

/** Everything that a payment may buy. */
export const sold = (routes: readonly Route[]): PaidRoute[] =>
  routes.flatMap((route) => (isPaid(route) ? [route] : isQuoted(route) ? route.sales : []));

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
  /** What the payment's scheme keeps of it; null for most. */
  readonly details: unknown;
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

/** Keeps the input's type while a route is written, and forgets it in the table: the gate hands `sell` what `input` parsed. */
export const paidRoute = <Input>(route: PaidRoute<Input>): PaidRoute => route as unknown as PaidRoute;
