import type { Context } from "hono";
import { z } from "zod";
import type { Atomic } from "../money.ts";
import type { Network } from "../networks.ts";
import type { Address, Hex } from "../wallet.ts";
import type { Completion, Output, Parameter, RecordedAnswer, StoredAnswer } from "./answer.ts";
import type { ProblemCode } from "./errors.ts";
import type { FieldError } from "./schema.ts";

/** A request with a payment. */
export interface Asked {
  /** The key under which the sender's requests are counted. */
  readonly client: string;
  /** The nonce of the payment. */
  readonly nonce: Hex;
}

interface RouteFacts {
  /**
   * A path as Hono reads it, like `/cert/:id` or `/log/tile/*`; its last parameter may have a suffix: `/cert/:id.svg`.
   */
  readonly path: string;
  readonly summary: string;
  /** The output with status 200. */
  readonly output: Output;
  /** Path and query parameters. */
  readonly parameters?: readonly Parameter[];
  /** The JSON body as documented to callers; a paid route's is its `input`, unless set here. */
  readonly body?: z.ZodType;
  /** Its specific problems, without those common to every route of its kind. */
  readonly problems?: readonly ProblemCode[];
}

/** A route that anyone may call for free. */
export interface FreeRoute extends RouteFacts {
  readonly method: "GET" | "POST";
  /** The maximum body size, if not the default. */
  readonly maxBodyBytes?: number;
  /** The chains whose wallets may sign in, by x402's extension `sign-in-with-x`; absent if there is no sign-in. */
  readonly signIn?: readonly Network[];
  /** The output with any other status, except problems. */
  readonly others?: Readonly<Record<number, Output>>;
  readonly handle: (context: Context) => Response | Promise<Response>;
  /** For a picture: what it shows instead of an error. Other sites embed it, and proxies cache it. */
  readonly placeholder?: (error: "missing" | "unavailable") => Picture;
}

export interface Picture {
  readonly type: `image/${string}`;
  readonly content: string | Uint8Array;
}

/** A route that answers only after its payment has settled on the chain. */
export interface PaidRoute<Input = unknown> extends RouteFacts {
  readonly method: "POST";
  /** A stable name in the journal, by which a stored payment finds its route. */
  readonly id: string;
  readonly terms: RouteTerms;
  readonly description: string;
  /** A custom issue means a refusal (422); any other means a malformed body (400). */
  readonly input: z.ZodType<Input>;
  /**
   * Checks that need a chain, the index, or the database. They run on behalf of a client, after the signature has been
   * verified and before anything is charged. Even an account without money can sign.
   */
  readonly intake?: (input: Input, payer: Address, asked: Asked) => Promise<Intake<Input>>;
  /** An example request and answer, for discovery. */
  readonly example: {
    readonly input: Readonly<Record<string, unknown>>;
    readonly output: Readonly<Record<string, unknown>> | readonly unknown[];
  };
  /** Shown in the menu of tests, if the route is one. */
  readonly menu?: MenuFacts;
  /**
   * Total, because an unfavorable result is an answer too. It may run more than once; only the first recorded result
   * counts.
   */
  readonly sell: Selling<Input>;
  readonly hooks?: RouteHooks<Input>;
  readonly privacy?: RoutePrivacy;
}

/** The price of a route and the ways to pay it. */
export interface RouteTerms {
  /** The networks for payment, preferred first. The price is the same on each. */
  readonly networks: readonly [Network, ...Network[]];
  readonly price: Atomic;
  /** The names of the accepted payment schemes, preferred first; only `exact` by default. */
  readonly schemes?: readonly [string, ...string[]];
  /** The seller, if not the service at its receiving address. */
  readonly seller?: Address;
  /** Why it is not for sale on this installation, in one sentence; absent if it is for sale. */
  readonly closed?: string;
}

/** Optional steps around a sale. */
export interface RouteHooks<Input> {
  /** Body members that may be given in the query instead. */
  readonly query?: readonly string[];
  /**
   * Prepares the data for the sale before the client has to pay; null once it is ready. Runs for unpaid requests with a
   * well-formed body.
   */
  readonly prepare?: (input: Input, client: string) => Promise<NotYet | null>;
  /**
   * Runs whenever a result is about to be sent to a client. The header of a settled payment can be rebuilt from the
   * chain, so the client may be a stranger.
   */
  readonly beforeResult?: (payment: PaymentKey, client: string) => Promise<void>;
  /**
   * Returns the `Link` header of a result, made whenever the result is sent, so that it can include records newer than
   * the sale. Null for no header. If it throws, the result is sent without one.
   */
  readonly links?: (answer: StoredAnswer) => Promise<string | null>;
}

/** The data that is hidden from requests without the payment. */
export interface RoutePrivacy {
  /**
   * For this many minutes, a payer who signs in does not see the answer, because a test may be running with the order.
   */
  readonly answerWithheldMinutes?: number;
  /** No look-up by transaction returns the record, because everyone can see its payment. */
  readonly isRecordUnlisted?: true;
}

/** Computes a sale from its input, without waiting and without visible effects. */
export interface Immediate<Input> {
  readonly immediate: (sale: Sale<Input>) => Completion;
}

/** How a sale is made. One that may wait, or that has visible effects, begins after its settlement is stored. */
export type Selling<Input> = Immediate<Input> | ((sale: Sale<Input>) => Promise<Completion>);

/** The accepted request, a refusal (422), or a temporary failure (503). */
export type Intake<Input> =
  | { readonly input: Input }
  | { readonly refused: readonly FieldError[] }
  | { readonly unavailable: string };

/** Why a request cannot be paid for now, and the seconds until a retry. */
export interface NotYet {
  readonly detail: string;
  readonly retryAfterSeconds: number;
  /** Whether this client itself has made too many requests. */
  readonly isSpent: boolean;
}

/** A payment's terms: USDC on a network, to one seller, exactly `value` atomic units. */
export interface Terms {
  readonly network: Network;
  readonly payTo: Address;
  readonly value: Atomic;
}

/** One 402: the terms and their wording. */
export interface Offer {
  readonly terms: Terms;
  /** The path being paid for, with its query. */
  readonly resource: string;
  readonly description: string;
  readonly maxTimeoutSeconds: number;
}

/** A route that quotes each call separately. The signed terms decide what a payment buys. */
export interface QuotedRoute extends RouteFacts {
  readonly method: "POST";
  readonly description: string;
  /** The products it may sell, which the journal looks up by id. */
  readonly sales: readonly PaidRoute[];
  /** Throws a Problem if no purchase can be quoted. */
  readonly quote: (context: Context) => Promise<Quotation>;
}

export interface Quotation {
  /** Returns the terms for an unpaid call. */
  offer(): Promise<Offer>;
  /** Returns the previous call's terms, for a payment whose signed terms were never offered. */
  repeat(): Offer;
  /**
   * Returns the purchase for the signed terms; null if they were never offered. Throws a Problem if this payer may not
   * buy.
   */
  match(signed: SignedOrder): Match | null | Promise<Match | null>;
}

/** The signed terms of a payment for a quoted route. */
export interface SignedOrder {
  readonly from: Address;
  readonly to: Address;
  readonly value: bigint;
  readonly nonce: Hex;
}

export interface Match {
  readonly offer: Offer;
  readonly route: PaidRoute;
  /** A short id of the purchase. The same payment for another purchase is a different request. */
  readonly purchase: string;
  /** An id known only to the service, which distinguishes two payments for one purchase. Null if there is none. */
  readonly paymentId: string | null;
  readonly input: unknown;
  /** Why no new payments are accepted; null while they are. */
  readonly over: string | null;
  /** Present if the payment is answered immediately and never submitted. Total, like `sell`. */
  readonly withhold?: (withheld: Withheld) => RecordedAnswer;
  /**
   * Called when the gate has an answer, a conflict, or found that the session is over. Returns how the answer is lost
   * on its way, or null to send it. It stays stored either way, so the same payment gets it later.
   */
  readonly deliver?: (said: "result" | "conflict" | "over") => Promise<Loss | null>;
}

/** The failure that a client sees instead of an existing answer. */
export type Loss = "connection_closed" | "unavailable" | "settlement_pending" | "server_error";

/** A payment that is answered but never submitted. */
export interface Withheld extends Omit<Sale<unknown>, "settlement" | "signal" | "input"> {
  /** EIP-712. */
  readonly digest: Hex;
}

/** Thrown while an answer is recorded if nothing is left to buy. Rolls everything back. */
export class SaleOver extends Error {}

export interface MenuFacts {
  readonly capability: string;
  readonly totalCost: Atomic;
  readonly steps: readonly string[];
  readonly howToRun: string;
}

/** The input of a route that needs none. The body is not stored. */
export const NO_INPUT = z.unknown().transform(() => null);

export type Route = FreeRoute | PaidRoute | QuotedRoute;

/** Returns the schemes that a route accepts. */
export const schemesOf = ({ schemes }: Pick<RouteTerms, "schemes">): readonly [string, ...string[]] =>
  schemes ?? ["exact"];

/** A route as listed in the table, with the part of the service it belongs to. */
export type Listed = Route & { readonly tag: Tag };

export type Tag =
  | "Certification"
  | "Risk score"
  | "Arbiter"
  | "Escrow"
  | "Settlement"
  | "Transparency log"
  | "Café"
  | "Board"
  | "Keys"
  | "Discovery";

export const isPaid = (route: Route): route is PaidRoute => "terms" in route;

export const isQuoted = (route: Route): route is QuotedRoute => "quote" in route;

/** Returns the chains whose wallets may sign in to a route. */
export const networksOfSignIn = (route: Route): readonly Network[] => ("signIn" in route && route.signIn) || [];

const SUFFIX = /(:\w+)(\.[\w-]+)$/;

/**
 * Returns the path at which Hono mounts a route. A path that ends like `/cert/:id.tlog-proof` is mounted at
 * `/cert/:id`, because Hono's fast router accepts one pattern per position, and a second one would send all requests
 * through its slow router.
 */
export const mountPath = ({ path }: Pick<Route, "path">): string => path.replace(SUFFIX, "$1");

/** Returns the suffix that a request's path must have, like `.tlog-proof`; undefined for most routes. */
export const suffixOf = ({ path }: Pick<Route, "path">): string | undefined => SUFFIX.exec(path)?.[2];

/** Returns everything that a payment can buy. */
export const sold = (routes: readonly Route[]): PaidRoute[] =>
  routes.flatMap((route) => (isPaid(route) ? [route] : isQuoted(route) ? route.sales : []));

/** A payment that the canonical chain shows as settled, with the request it paid for. */
export interface Sale<Input> {
  readonly input: Input;
  readonly payment: PaymentKey;
  readonly version: "v1" | "v2";
  readonly payTo: Address;
  readonly value: Atomic;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly receivedAt: Date;
  /** The data that the payment's scheme stores; null for most. */
  readonly details: unknown;
  readonly settlement: { readonly transaction: Hex; readonly block: number };
  readonly signal: AbortSignal;
}

/** Identifies an authorization: (network, asset, payer, nonce). Record ids derive from it. */
export interface PaymentKey {
  readonly network: Network;
  readonly asset: Address;
  readonly payer: Address;
  readonly nonce: Hex;
}

/**
 * Checks a route against its input's type, then erases the type for the table. The gate passes the parsed `input` to
 * `sell`.
 */
export const paidRoute = <Input>(route: PaidRoute<Input>): PaidRoute => route as unknown as PaidRoute;
