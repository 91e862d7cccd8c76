import type { Context } from "hono";
import { z } from "zod";
import type { Atomic } from "../money.ts";
import type { Network } from "../networks.ts";
import type { Address, Hex } from "../wallet.ts";
import type { Completion, Output, Parameter, RecordedAnswer, StoredAnswer } from "./answer.ts";
import type { ProblemCode } from "./errors.ts";
import type { FieldError } from "./schema.ts";

/** A request that comes with a payment. */
export interface Asked {
  /** The key that its sender is counted under. */
  readonly client: string;
  /** Of the payment. */
  readonly nonce: Hex;
}

interface RouteFacts {
  /** A path as Hono reads it, like `/cert/:id` or `/log/tile/*`; its last parameter may have a suffix: `/cert/:id.svg`. */
  readonly path: string;
  readonly summary: string;
  /** What it returns with status 200. */
  readonly output: Output;
  /** Path and query parameters. */
  readonly parameters?: readonly Parameter[];
  /** The JSON body as documented to callers; a paid route's is its `input`, unless set here. */
  readonly body?: z.ZodType;
  /** Problems of its own, without those common to every route of its kind. */
  readonly problems?: readonly ProblemCode[];
}

/** A route that anyone may call for free. */
export interface FreeRoute extends RouteFacts {
  readonly method: "GET" | "POST";
  /** The largest body it accepts, if not the default. */
  readonly maxBodyBytes?: number;
  /** The chains whose wallets it asks to sign in, by x402's extension `sign-in-with-x`; absent if it asks nobody. */
  readonly signIn?: readonly Network[];
  /** What it returns with any other status, problems aside. */
  readonly others?: Readonly<Record<number, Output>>;
  readonly handle: (context: Context) => Response | Promise<Response>;
  /** Of a picture: what it shows instead of an error. Pages elsewhere embed it, and proxies keep what they get. */
  readonly placeholder?: (error: "missing" | "unavailable") => Picture;
}

export interface Picture {
  readonly type: `image/${string}`;
  readonly content: string | Uint8Array;
}

/** A route that answers only once its payment has settled on chain. */
export interface PaidRoute<Input = unknown> extends RouteFacts {
  readonly method: "POST";
  /** Stable name in the journal, by which a stored payment finds its route again. */
  readonly id: string;
  readonly terms: RouteTerms;
  readonly description: string;
  /** A custom issue means a refusal (422); any other means a malformed body (400). */
  readonly input: z.ZodType<Input>;
  /**
   * Checks that need a chain, the index or the database, run before anything is charged and after the signature has been
   * verified, on behalf of a client. An account without any money signs as well as any other.
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
   * Total: an unfavorable result is an answer too. It may run more than once; only the first recorded result counts.
   */
  readonly sell: Selling<Input>;
  readonly hooks?: RouteHooks<Input>;
  readonly privacy?: RoutePrivacy;
}

/** What a route costs, and how it is paid. */
export interface RouteTerms {
  /** Where it can be paid, preferred first; the price is the same on each. */
  readonly networks: readonly [Network, ...Network[]];
  readonly price: Atomic;
  /** The payment schemes it accepts, by name, preferred first; only `exact` by default. */
  readonly schemes?: readonly [string, ...string[]];
  /** The seller, if it is not the service at its receiving address. */
  readonly seller?: Address;
  /** Why it is not for sale on this installation, in one sentence; absent if it is for sale. */
  readonly closed?: string;
}

/** What some routes do around a sale. */
export interface RouteHooks<Input> {
  /** Body members that may be given in the query instead. */
  readonly query?: readonly string[];
  /**
   * Prepares what the sale needs before anyone is asked to pay, on behalf of a client; null once it is ready. Runs for
   * unpaid requests with a well-formed body.
   */
  readonly prepare?: (input: Input, client: string) => Promise<NotYet | null>;
  /**
   * Runs whenever a result is about to be sent, to a client. A settled payment's header can be rebuilt from the chain, so
   * a stranger may send it.
   */
  readonly told?: (payment: PaymentKey, client: string) => Promise<void>;
  /**
   * The `Link` header of a result, made whenever it is sent, so that it can name what is newer than the sale. Null for no
   * header. If it throws, the result is sent without one.
   */
  readonly links?: (answer: StoredAnswer) => Promise<string | null>;
}

/** What is kept from those who do not send the payment again. */
export interface RoutePrivacy {
  /** For this long, a payer who signs in does not see the answer: a test that the order belongs to may be running. */
  readonly answerWithheldMinutes?: number;
  /** No look-up by transaction names the record, because everybody sees its payment. */
  readonly isRecordUnlisted?: true;
}

/** Computes a sale from what it is given: it waits for nothing, and nobody else notices it. */
export interface AtOnce<Input> {
  readonly atOnce: (sale: Sale<Input>) => Completion;
}

/** How a sale is made. One that may wait, or that others notice, begins once its settlement is stored. */
export type Selling<Input> = AtOnce<Input> | ((sale: Sale<Input>) => Promise<Completion>);

/** The accepted request, why it is refused (422), or what is temporarily unavailable (503). */
export type Intake<Input> =
  | { readonly input: Input }
  | { readonly refused: readonly FieldError[] }
  | { readonly unavailable: string };

/** Why a request cannot be paid for now, and after how many seconds to come back. */
export interface NotYet {
  readonly detail: string;
  readonly retryAfterSeconds: number;
  /** Whether it is this client that has asked for too much. */
  readonly isSpent: boolean;
}

/** What to pay: USDC on a network, to one seller, exactly `value` atomic units. */
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

/** A route that quotes each call separately; the terms that were signed decide what a payment buys. */
export interface QuotedRoute extends RouteFacts {
  readonly method: "POST";
  readonly description: string;
  /** What it may sell; the journal looks these up by id. */
  readonly sales: readonly PaidRoute[];
  /** Throws a Problem if there is nothing to quote. */
  readonly quote: (context: Context) => Promise<Quotation>;
}

export interface Quotation {
  /** The terms for an unpaid call. */
  offer(): Promise<Offer>;
  /** The previous call's terms, for a payment whose signed terms were never offered. */
  repeat(): Offer;
  /** What the signed terms buy; null if they were never offered. Throws a Problem if this payer is offered nothing. */
  match(signed: SignedOrder): Match | null | Promise<Match | null>;
}

/** What a payment for a quoted route was signed for. */
export interface SignedOrder {
  readonly from: Address;
  readonly to: Address;
  readonly value: bigint;
  readonly nonce: Hex;
}

export interface Match {
  readonly offer: Offer;
  readonly route: PaidRoute;
  /** What is bought, in short: the same payment for another purchase is a different request. */
  readonly purchase: string;
  /** Known only to the service; tells two payments for one purchase apart. Null if it has none. */
  readonly paymentId: string | null;
  readonly input: unknown;
  /** Why no new payments are accepted; null while they are. */
  readonly over: string | null;
  /** Present if the payment is answered at once and never submitted. Total, like `sell`. */
  readonly withhold?: (withheld: Withheld) => RecordedAnswer;
  /**
   * Asked once the gate has an answer, a conflict, or found that it is over: how the answer gets lost on its way, or null
   * if it is sent. It stays stored either way, so the same payment gets it later.
   */
  readonly deliver?: (said: "result" | "conflict" | "over") => Promise<Loss | null>;
}

/** What a client sees instead of an answer that exists. */
export type Loss = "connection_closed" | "unavailable" | "settlement_pending" | "server_error";

/** A payment that is answered but never submitted. */
export interface Withheld extends Omit<Sale<unknown>, "settlement" | "signal" | "input"> {
  /** EIP-712. */
  readonly digest: Hex;
}

/** Thrown while recording an answer when nothing is left to buy; rolls everything back. */
export class SaleOver extends Error {}

export interface MenuFacts {
  readonly capability: string;
  readonly totalCost: Atomic;
  readonly steps: readonly string[];
  readonly howToRun: string;
}

/** The input of a route that needs none: whatever the body says is not stored. */
export const NO_INPUT = z.unknown().transform(() => null);

export type Route = FreeRoute | PaidRoute | QuotedRoute;

/** The schemes a route accepts. */
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

/** The chains whose wallets a route asks to sign in. */
export const networksOfSignIn = (route: Route): readonly Network[] => ("signIn" in route && route.signIn) || [];

const SUFFIX = /(:\w+)(\.[\w-]+)$/;

/**
 * Where Hono mounts a route. A path that ends like `/cert/:id.tlog-proof` shares the place of `/cert/:id`: Hono's fast
 * router takes one pattern at each place, and with a second one it leaves all requests to its slow router.
 */
export const mountPath = ({ path }: Pick<Route, "path">): string => path.replace(SUFFIX, "$1");

/** What a request's path must end with besides, like `.tlog-proof`; undefined for most routes. */
export const suffixOf = ({ path }: Pick<Route, "path">): string | undefined => SUFFIX.exec(path)?.[2];

/** Everything a payment can buy. */
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
  /** What the payment's scheme stores for it; null for most. */
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
 * Checks a route against its input's type, then erases the type for the table: the gate passes `sell` what `input`
 * parsed.
 */
export const paidRoute = <Input>(route: PaidRoute<Input>): PaidRoute => route as unknown as PaidRoute;
