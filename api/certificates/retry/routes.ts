import type { Context } from "hono";
import { z } from "zod";
import { inQuery, json } from "../../platform/http/answer.ts";
import { Problem } from "../../platform/http/errors.ts";
import type { Clients } from "../../platform/http/request.ts";
import { type PaidRoute, paidRoute, type QuotedRoute, type Route } from "../../platform/http/route.ts";
import type { TestOrdering } from "../agent-registries/order.ts";
import { retry as kind, RETRY_COST } from "../kinds/retry.ts";
import {
  nameOf,
  pathOf,
  refuseOthers,
  resultRoute,
  SESSION_TOKEN,
  type SessionTest,
  sessionOf,
  startRoute,
  stepOf,
  WALLET,
} from "../sessions/routes.ts";
import { SESSION_MINUTES, type TestMode } from "../sessions/session.ts";
import { priceOf } from "./answers.ts";
import type { OrderNumber } from "./lost-order.ts";
import type { LossyInput, OpenedRetry, RetryTests } from "./run-retry.ts";

export interface RetryRouteParts {
  readonly mode: TestMode;
  readonly retry: RetryTests;
  readonly ordering: TestOrdering;
  readonly baseUrl: string;
  readonly peers: Clients;
}

const number = z.literal([1, 2]);
const ORDER = { name: "order", description: "Which of the two orders: 1 or 2.", schema: z.enum(["1", "2"]) };
const INPUT: z.ZodType<LossyInput> = z.object({ session: z.string(), token: z.string(), order: number });

/** Returns the three routes of the retry safety test. */
export function retryRoutes({ retry, mode, ordering, baseUrl, peers }: RetryRouteParts): readonly Route[] {
  const { start, beforeResult, find, result } = retry;
  const shared = { kind, mode, totalCost: RETRY_COST, firstOrder: priceOf(kind, 1), ordering, baseUrl, peers };
  const test: SessionTest<OpenedRetry> = { ...shared, start, beforeResult, find, result };
  return [startRoute(test), attemptRoute(test, retry), resultRoute(test)];
}

function attemptRoute(test: SessionTest<OpenedRetry>, retry: RetryTests): QuotedRoute {
  const sales = { 1: sold(1, test, retry), 2: sold(2, test, retry) };
  return {
    method: "POST",
    path: `${pathOf(test)}/attempt`,
    summary: `The two orders of a running ${nameOf(test)}`,
    description: kind.order,
    parameters: [WALLET, SESSION_TOKEN, inQuery(ORDER)],
    output: json(stepOf(test.mode)),
    problems: ["malformed_request", "not_found", "wrong_payer", "session_over"],
    sales: [sales[1], sales[2]],
    async quote(c) {
      const order = orderIn(c);
      // An empty token matches no session, because naming only the wallet would let strangers in.
      const found = await sessionOf(test, c, { wallet: c.req.query("wallet"), session: c.req.query("session") ?? "" });
      return {
        async offer() {
          const offer = await retry.serve(found, order);
          if (typeof offer === "string") throw new Problem("session_over", { detail: offer });
          return offer;
        },
        repeat: () => retry.offer(found, order),
        match(signed) {
          refuseOthers(found.session.wallet, signed.from);
          return retry.match(found, { order, signed, route: sales[order] });
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

/** Returns an order as the gate knows it. */
const sold = (order: OrderNumber, test: SessionTest<OpenedRetry>, retry: RetryTests): PaidRoute =>
  paidRoute({
    id: `${test.mode.name}.${kind.product}.${order === 1 ? "first" : "second"}`,
    method: "POST",
    path: `${pathOf(test)}/attempt`,
    terms: { networks: [test.mode.network], price: priceOf(kind, order) },
    summary: kind.order,
    description: kind.order,
    input: INPUT,
    output: json(stepOf(test.mode)),
    example: { input: {}, output: {} },
    privacy: { answerWithheldMinutes: SESSION_MINUTES },
    sell: (sale) => retry.order(sale),
  });
