import { preflight } from "./cross-origin.ts";
import { createSeller, type SellerOptions } from "./seller.ts";
import type { Validate } from "./validate.ts";
import { received } from "./whole-request.ts";

export interface RouteOptions<R extends Request> extends SellerOptions {
  /**
   * Checks the input of a request before anything is held for it, paid or not. A refusal (400 to 499) is returned to
   * the buyer, whose signature is not used. It gets a copy of the request, so it may read the body.
   */
  readonly validate?: Validate<R>;
}

/**
 * Makes an escrowed route handler for Next.js, or for anything else that turns a `Request` into a `Response`:
 * `export const POST = escrowed(options, async (request) => Response.json(…))`.
 * @param handler receives the request, the route's context, and the payment's id
 * @throws TypeError for an invalid price or `leastSecondsLeft`, or without a node URL
 */
export function escrowed<R extends Request = Request, C = unknown>(
  options: RouteOptions<R>,
  handler: (request: R, context: C, paymentId: string) => Response | Promise<Response>,
): (request: R, context: C) => Promise<Response> {
  const serve = createSeller(options);
  return async (sent, context) => {
    const allowed = preflight(sent.method, (name) => sent.headers.get(name));
    if (allowed !== null) return allowed;
    let request = sent;
    return serve({
      method: sent.method,
      url: sent.url,
      payment: sent.headers.get("payment-signature"),
      xPayment: sent.headers.get("x-payment"),
      async receive() {
        const taken = await received(sent);
        if ("refusal" in taken) return taken.refusal;
        request = taken.request;
        return null;
      },
      validate: () => options.validate?.(request.clone() as R),
      run: async (id) => {
        try {
          return await handler(request, context, id);
        } catch (error) {
          console.error(error);
          return new Response("Internal Server Error", { status: 500 });
        }
      },
    });
  };
}
