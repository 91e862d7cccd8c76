import { createReplays, type ReplayableOptions } from "./replays.ts";
import { bodyOf, servedBy, unpaid } from "./web.ts";

export type { ReplayableOptions } from "./replays.ts";

/**
 * Wraps a route handler of Next.js behind stock x402 middleware: `export const GET = replayable(withX402(…))`. The
 * response to a settled payment is stored, and the same payment for the same request gets it again. Copies of a payment
 * wait for the first one.
 */
export function replayable<R extends Request, C>(
  route: (request: R, context: C) => Response | Promise<Response>,
  options: ReplayableOptions = {},
): (request: R, context: C) => Promise<Response> {
  const replays = createReplays(options);
  return async (request, context) => {
    let made = new Response(null, { status: 500 });
    const replay = await replays({
      method: request.method,
      url: request.url,
      header: (name) => request.headers.get(name),
      body: () => bodyOf(request),
      async serve(how) {
        made = await route(how === "unpaid" ? unpaid(request) : request, context);
        return servedBy(made);
      },
    });
    return replay ?? made;
  };
}
