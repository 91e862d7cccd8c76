import type { Context } from "hono";
import { z } from "zod";
import { inQuery, json } from "../../platform/http/answer.ts";
import { Problem } from "../../platform/http/errors.ts";
import type { QuotedRoute, Route, Sale } from "../../platform/http/route.ts";
import {
  nameOf,
  orderRoute,
  pathOf,
  refuseOthers,
  resultRoute,
  SESSION_TOKEN,
  sessionOf,
  startRoute,
  stepOf,
  type TestRouteParts,
  WALLET,
} from "../sessions/routes.ts";
import { priceOf } from "./answers.ts";
import type { OrderNumber } from "./lost-order.ts";
import { LOSSY_INPUT, type LossyInput, type RetryTest } from "./run-retry.ts";

const ORDER = { name: "order", description: "Which of the two orders: 1 or 2.", schema: z.enum(["1", "2"]) };
export const retryRoutes = (parts: TestRouteParts<RetryTest>): readonly Route[] => [
  startRoute(parts),
  attemptRoute(parts),
  resultRoute(parts),
];

function attemptRoute(parts: TestRouteParts<RetryTest>): QuotedRoute {
  const { test } = parts;
  const sell = (sale: Sale<LossyInput>) => test.order(sale);
  const sales = {
    1: orderRoute(test, { id: "first", price: priceOf(test.kind, 1), input: LOSSY_INPUT, sell }),
    2: orderRoute(test, { id: "second", price: priceOf(test.kind, 2), input: LOSSY_INPUT, sell }),
  };
  return {
    method: "POST",
    path: `${pathOf(test)}/attempt`,
    summary: `The two orders of a running ${nameOf(test)}`,
    description: test.kind.order,
    parameters: [WALLET, SESSION_TOKEN, inQuery(ORDER)],
    output: json(stepOf(test.mode)),
    problems: ["malformed_request", "not_found", "wrong_payer", "session_over"],
    sales: [sales[1], sales[2]],
    async quote(c) {
      const order = orderIn(c);
      // An empty token matches no session, because naming only the wallet would let strangers in.
      const found = await sessionOf(parts, c, { wallet: c.req.query("wallet"), session: c.req.query("session") ?? "" });
      return {
        async offer() {
          const offer = await test.serve(found, order);
          if (typeof offer === "string") throw new Problem("session_over", { detail: offer });
          return offer;
        },
        repeat: () => test.offer(found, order),
        match(signed) {
          refuseOthers(found.session.wallet, signed.from);
          return test.match(found, { order, signed, route: sales[order] });
        },
      };
    },
  };
}

function orderIn(c: Context): OrderNumber {
  const order = ORDER.schema.safeParse(c.req.query("order"));
  if (order.success) return order.data === "1" ? 1 : 2;
  throw new Problem("malformed_request", { detail: "order must be 1 or 2, the number of the order to buy." });
}
