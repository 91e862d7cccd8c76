import type { Context, Env, Handler, MiddlewareHandler } from "hono";
import { preflight } from "./cross-origin.ts";
import { ownHeaders, withHeaders } from "./own-headers.ts";
import { createSeller, type SellerOptions } from "./seller.ts";
import type { Validate } from "./validate.ts";
import { received } from "./whole-request.ts";

export interface EscrowedOptions<E extends Env = Env> extends SellerOptions {
  /**
   * Checks the input of a request before anything is held for it, paid or not. A refusal (400 to 499) is returned to
   * the buyer, whose signature is not used.
   */
  readonly validate?: Validate<Context<E>>;
}

/**
 * Makes a Hono route an escrowed one: an unpaid request gets a 402 with the terms; a paid one is held on chain, then
 * handled, and its response goes to the arbiter, which releases or refunds the money.
 * @param handler the route's handler, which finds the payment's id in `c.get("escrowPaymentId")`; if omitted, the next
 * handlers respond
 * @throws TypeError for an invalid price or `leastSecondsLeft`, or without a node URL
 */
export function escrowed<E extends Env = Env>(options: EscrowedOptions<E>, handler?: Handler<E>): MiddlewareHandler<E> {
  const serve = createSeller(options);
  return async (c, next) => {
    const allowed = preflight(c.req.method, (name) => c.req.header(name));
    if (allowed !== null) return allowed;
    const before = new Headers(c.res.headers);
    const answer = await serve({
      method: c.req.method,
      url: c.req.url,
      payment: c.req.header("payment-signature"),
      xPayment: c.req.header("x-payment"),
      async receive() {
        const taken = await received(c.req.raw);
        if ("refusal" in taken) return taken.refusal;
        c.req.raw = taken.request;
        return null;
      },
      validate: () => options.validate?.(c),
      async run(id) {
        (c as Context).set("escrowPaymentId", id);
        // Cleared, because the headers of this response would replace the next one's cookies.
        c.res = undefined;
        c.finalized = false;
        let made: Response | undefined;
        if (handler === undefined) await next();
        else made = await handled(() => handler(c, next), c);
        const { status, headers, body } = made ?? c.res;
        return new Response(body, { status, headers: ownHeaders(before, headers) });
      },
    });
    // Cleared first, because assigning to a response would merge its headers into the new one.
    c.res = undefined;
    c.res = withHeaders(before, answer);
  };
}

/** Returns a handler's response, or one like Hono's default if it throws. */
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
