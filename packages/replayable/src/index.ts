import type { Env, MiddlewareHandler } from "hono";
import { createReplays, type ReplayableOptions } from "./replays.ts";
import { bodyOf, servedBy, unpaid } from "./web.ts";

export { type Answer, type AnswerStore, type MemoryLimits, memoryAnswers } from "./answer-store.ts";
export type { ReplayableOptions } from "./replays.ts";

/**
 * Wraps stock x402 middleware of Hono: `app.use(replayable(paymentMiddleware(…)))`. The answer of a settled payment is
 * stored, and the same payment for the same request gets it again. Copies of a payment wait for the first one.
 */
export function replayable<E extends Env = Env>(
  middleware: MiddlewareHandler<E>,
  options: ReplayableOptions = {},
): MiddlewareHandler<E> {
  const replays = createReplays(options);
  return async (c, next) => {
    let made: unknown;
    const replay = await replays({
      method: c.req.method,
      url: c.req.url,
      header: (name) => c.req.header(name),
      body: async () => (c.req.raw.bodyUsed ? new Uint8Array(await c.req.arrayBuffer()) : bodyOf(c.req.raw)),
      async serve(how) {
        if (how === "unpaid") c.req.raw = unpaid(c.req.raw);
        made = await middleware(c, next);
        return servedBy(made instanceof Response ? made : c.res);
      },
    });
    return replay ?? (made instanceof Response ? made : undefined);
  };
}
