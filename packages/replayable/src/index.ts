import type { Env, MiddlewareHandler } from "hono";
import { ownHeaders, withHeaders } from "../../escrow/src/own-headers.ts";
import { createReplays, type ReplayableOptions } from "./replays.ts";
import { bodyOf, servedBy, unpaid } from "./web.ts";

export { type Answer, type AnswerStore, type MemoryLimits, memoryAnswers } from "./answer-store.ts";
export type { ReplayableOptions } from "./replays.ts";

/**
 * Wraps stock x402 middleware of Hono: `app.use(replayable(paymentMiddleware(…)))`. The response to a settled payment
 * is stored, and the same payment for the same request gets it again. Copies of a payment wait for the first one.
 */
export function replayable<E extends Env = Env>(
  middleware: MiddlewareHandler<E>,
  options: ReplayableOptions = {},
): MiddlewareHandler<E> {
  const replays = createReplays(options);
  return async (c, next) => {
    const before = new Headers(c.res.headers);
    let made = new Response(null, { status: 500 });
    const replay = await replays({
      method: c.req.method,
      url: c.req.url,
      header: (name) => c.req.header(name),
      body: async () => (c.req.raw.bodyUsed ? new Uint8Array(await c.req.arrayBuffer()) : bodyOf(c.req.raw)),
      async serve(how) {
        if (how === "unpaid") c.req.raw = unpaid(c.req.raw);
        // Cleared, because the headers of this response would replace the next one's cookies.
        c.res = undefined;
        c.finalized = false;
        const returned: unknown = await middleware(c, next);
        const response = returned instanceof Response ? returned : c.res;
        // Headers that were added to the response before belong to this request.
        made = [...before].length === 0 ? response : withOnly(ownHeaders(before, response.headers), response);
        return servedBy(made);
      },
    });
    const answer = replay ?? made;
    // Cleared first, because assigning to a response would merge its headers into the new one.
    c.res = undefined;
    c.res = [...before].length === 0 ? answer : withHeaders(before, answer);
  };
}

const withOnly = (headers: Headers, { status, statusText, body }: Response): Response =>
  new Response(body, { status, statusText, headers });
