import type { Context, Env, Handler, MiddlewareHandler } from "hono";
import { type Address, type Client, createClient, http, type LocalAccount } from "viem";
import * as answers from "./answers.ts";
import { mismatch } from "./check-payment.ts";
import { type Forward, forwardTo } from "./forward.ts";
import { type SendHold, sendFrom } from "./hold.ts";
import { parseAmount } from "./money.ts";
import { isSignedByPayer } from "./payer-signature.ts";
import { parsePaymentHeader } from "./payment-header.ts";
import { readEscrow } from "./read-escrow.ts";
import { type Purchase, type SaleParts, sell } from "./sale.ts";
import type { DeliveryStore } from "./stores/delivery-store.ts";
import { sharedMemory } from "./stores/memory-store.ts";
import type { EscrowFacts, Offer } from "./terms.ts";
import { parseLeastSecondsLeft } from "./time-left.ts";

export interface EscrowedOptions {
  /**
   * The merchant: receives the payments, signs deliveries and, unless `hold` is given, sends the holds and pays their
   * gas.
   */
  readonly account: LocalAccount;
  /** JSON-RPC of the chain to sell on; either this or `client`. */
  readonly rpcUrl?: string;
  readonly client?: Client;
  /** US dollars like "0.10", or atomic units of USDC. */
  readonly price: string | bigint;
  /** The trust service, like "https://trust.example". */
  readonly arbiterUrl: string;
  /** The escrow contract; if omitted, the trust service is asked once which one it arbitrates. */
  readonly escrow?: Address;
  /**
   * How many seconds of a hold's 30 minutes must be left when the handler starts, 60 to 1800; default 1200. It is more
   * than the longest time that your handler takes. It does not concern a hold that this request has just made.
   */
  readonly leastSecondsLeft?: number;
  /** What is sold, described for the buyer. */
  readonly description?: string;
  /** Sends `authorize` to the chain in place of `account`, and returns the transaction. */
  readonly hold?: SendHold;
  /** Default: in memory, shared by all routes of the process, bounded. */
  readonly store?: DeliveryStore;
  /** Gives a delivery to the arbiter; defaults to `POST {arbiterUrl}/escrow/verify`. */
  readonly forward?: Forward;
  /** Receives errors that no answer can report; defaults to `console.error`. */
  readonly log?: (message: string, cause: unknown) => void;
}

/**
 * Turns a route into an escrowed one: an unpaid request is answered 402 with the terms; a paid one is held on chain,
 * then handled, and its response goes to the arbiter, who releases or refunds the money.
 * @param handler the route's handler; if omitted, the next ones answer
 * @throws TypeError for an invalid price or `leastSecondsLeft`, or without a node to ask
 */
export function escrowed<E extends Env = Env>(options: EscrowedOptions, handler?: Handler<E>): MiddlewareHandler<E> {
  const open = counter(options);
  return async (c, next) => {
    const answer = await serve(c, await open(), async (id) => {
      (c as Context).set("escrowPaymentId", id);
      if (handler !== undefined) return (await handled(() => handler(c, next), c)) ?? c.res;
      await next();
      return c.res;
    });
    if (!c.finalized) return answer;
    // Assigning to a response would merge its headers into the new one.
    c.res = undefined;
    c.res = answer;
  };
}

/** Everything needed to serve a request; null while the escrow cannot be read. */
interface Counter {
  readonly parts: SaleParts;
  readonly offer: Offer;
  readonly description: string;
}

/** Reads the escrow on the first request, and again after a failure. */
function counter(options: EscrowedOptions): () => Promise<Counter | null> {
  const price = parseAmount(options.price);
  const leastSecondsLeft = parseLeastSecondsLeft(options.leastSecondsLeft);
  const arbiterUrl = options.arbiterUrl.replace(/\/+$/, "");
  const { account, description = "", log = (message, cause) => console.error(message, cause) } = options;
  const client = clientOf(options);
  const send = options.hold ?? sendFrom(client, account);
  const forward = options.forward ?? forwardTo(arbiterUrl, account);
  const store = options.store ?? sharedMemory;
  let known: Promise<EscrowFacts> | undefined;
  return async () => {
    known ??= readEscrow(client, arbiterUrl, options.escrow);
    try {
      const escrow = await known;
      const offer = { escrow, merchant: account.address, price };
      return { parts: { client, escrow, send, forward, store, log, leastSecondsLeft }, offer, description };
    } catch (error) {
      known = undefined;
      log("The escrow could not be read.", error);
      return null;
    }
  };
}

function clientOf({ client, rpcUrl }: EscrowedOptions): Client {
  if (client !== undefined) return client;
  if (rpcUrl === undefined) throw new TypeError("escrowed() needs rpcUrl or client to reach the chain it sells on.");
  return createClient({ transport: http(rpcUrl) });
}

const UNKNOWN = "The payment could not be completed. Do not sign again; send the same header again.";

async function serve(c: Context, counter: Counter | null, run: Purchase["run"]): Promise<Response> {
  if (counter === null)
    return answers.unavailable("The escrow is temporarily unreachable. Send the same request again.");
  const { parts, offer, description } = counter;
  const refuse = (error: string) => answers.paymentRequired({ offer, url: c.req.url, description, error });
  const header = c.req.header("payment-signature");
  if (header === undefined) return refuse("Payment required.");
  const payment = parsePaymentHeader(header);
  if ("malformed" in payment) return answers.malformed(payment.malformed);
  const wrong = mismatch(payment, offer, Date.now());
  if (wrong !== null) return refuse(wrong);
  try {
    if (!(await isSignedByPayer(parts.client, offer.escrow, payment))) {
      return refuse(`${payment.info.payer} did not sign these terms.`);
    }
    const outcome = await sell(parts, { payment, resource: resourceOf(c.req), run });
    if (outcome.kind === "payment_required") return refuse(outcome.error);
    if (outcome.kind === "conflict") return answers.conflict(outcome.error);
    if (outcome.kind === "not_yet") return answers.unavailable(outcome.error);
    return answers.delivered(outcome, { offer, payer: payment.info.payer });
  } catch (error) {
    parts.log("A payment could not be completed.", error);
    return answers.unavailable(UNKNOWN);
  }
}

const resourceOf = ({ method, url }: Context["req"]): string => {
  const { pathname, search } = new URL(url);
  return `${method} ${pathname}${search}`;
};

/** A handler's answer; if it throws, a response like Hono's default. */
async function handled(handler: () => unknown, c: Context): Promise<Response | undefined> {
  try {
    return (await handler()) as Response | undefined;
  } catch (error) {
    c.error = error instanceof Error ? error : new Error(String(error));
    const { getResponse } = error as { getResponse?: unknown };
    if (typeof getResponse === "function") return getResponse.call(error) as Response;
    console.error(error);
    return new Response("Internal Server Error", { status: 500 });
  }
}
