import type { HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { Context } from "hono";
import { Problem, problemBody } from "../platform/http/errors.ts";
import type { Network } from "../platform/networks.ts";
import type { Loss } from "../platform/http/route.ts";
import type { PresentedPayment } from "./scheme.ts";
import { settlementPending } from "./settlement-pending.ts";
import type { Answer } from "./step-types.ts";

const RETRY_AFTER_SECONDS = "2";
const SETTLED =
  "The payment has settled, but its result is not ready yet. Do not sign again; send the same header again.";

/** A payment whose answer exists and is not sent. */
interface Unsent {
  readonly payment: PresentedPayment;
  readonly network: Network;
  readonly answer: Extract<Answer, { say: "result" }>;
}

/** What a client gets instead of its answer: what a bad connection, a busy or a broken server would give it. */
export function lose(c: Context, loss: Loss, { payment, network, answer }: Unsent): Response {
  switch (loss) {
    case "connection_closed":
      return hangUp(c);
    case "unavailable":
      throw pending();
    case "settlement_pending":
      throw pending(
        settlementPending({ payment, network, transaction: answer.settlement?.transaction ?? null, message: SETTLED }),
      );
    case "server_error":
      // Not thrown: it is no failure of ours, and raises no alarm.
      return c.body(JSON.stringify(problemBody("internal_error", BROKEN, c.get("requestId"))), 500, {
        "content-type": "application/problem+json",
        "cache-control": "no-store",
      });
    default:
      return loss satisfies never;
  }
}

const BROKEN = { detail: "Something went wrong. If the request was paid, send it again unchanged: nothing is lost." };

const pending = (headers: Readonly<Record<string, string>> = {}) =>
  new Problem("payment_pending", { detail: SETTLED, headers: { "retry-after": RETRY_AFTER_SECONDS, ...headers } });

/** Closes the connection without an answer. Behind a proxy that is its 502. */
function hangUp(c: Context): Response {
  const { outgoing } = (c.env ?? {}) as Partial<HttpBindings>;
  if (outgoing === undefined) throw pending();
  outgoing.destroy();
  return RESPONSE_ALREADY_SENT;
}
