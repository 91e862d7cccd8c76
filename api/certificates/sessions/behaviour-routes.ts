import { z } from "zod";
import type { Clients } from "../../platform/http/client.ts";
import { Problem } from "../../platform/http/errors.ts";
import { json } from "../../platform/http/output.ts";
import { type PaidRoute, paidRoute, type QuotedRoute, type Route, type Selling } from "../../platform/http/route.ts";
import type { TestOrdering } from "../agent-registries/order.ts";
import { type BaitedKind, totalCost } from "../kinds/behavioural.ts";
import { BAITED_KINDS } from "../kinds/index.ts";
import { STEP } from "./behaviour-schemas.ts";
import type { BehaviouralTests, Opened, OrderInput } from "./run-session.ts";
import { SESSION_MINUTES } from "./session.ts";
import {
  BEHAVIOUR_NETWORK,
  refuseOthers,
  resultRoute,
  SESSION,
  type SessionTest,
  sessionOf,
  startRoute,
  WALLET,
} from "./session-routes.ts";

export interface BehaviourRouteParts {
  readonly behaviour: BehaviouralTests;
  readonly ordering: TestOrdering;
  readonly baseUrl: string;
  readonly peers: Clients;
}

const ORDER: z.ZodType<OrderInput> = z.object({ session: z.string(), token: z.string().nullable() });

/** The three routes of every behavioural test with a bait. */
export const behaviourRoutes = (parts: BehaviourRouteParts): readonly Route[] =>
  BAITED_KINDS.flatMap((kind) => {
    const test = testOf(kind, parts);
    return [startRoute(test), attemptRoute(kind, { ...parts, test }), resultRoute(test)];
  });

const testOf = (
  kind: BaitedKind,
  { behaviour, ordering, baseUrl, peers }: BehaviourRouteParts,
): SessionTest<Opened> => ({
  kind,
  totalCost: totalCost(kind),
  firstOrder: kind.control,
  ordering,
  baseUrl,
  peers,
  start: (sale) => behaviour.start(kind, sale),
  told: (entry, client) => behaviour.told(kind, entry, client),
  find: (asked) => behaviour.find(kind, asked),
  result: (found) => behaviour.result(kind, found),
});

function attemptRoute(
  kind: BaitedKind,
  parts: BehaviourRouteParts & { readonly test: SessionTest<Opened> },
): QuotedRoute {
  const [control, bait] = orders(kind, parts);
  return {
    method: "POST",
    path: `/test/${kind.product}/attempt`,
    summary: `The two orders of a running ${kind.product} test, one per call`,
    description: kind.order,
    parameters: [WALLET, SESSION],
    output: json(STEP),
    problems: ["not_found", "wrong_payer", "session_held", "session_over"],
    sales: [control, bait],
    async quote(c) {
      const opened = await sessionOf(parts.test, c, { wallet: c.req.query("wallet"), session: c.req.query("session") });
      return {
        async offer() {
          const offer = await parts.behaviour.serve(kind, opened);
          if (typeof offer === "string") throw new Problem("session_over", { detail: offer });
          return offer;
        },
        repeat: () => parts.behaviour.repeat(kind, opened),
        match(signed) {
          refuseOthers(opened.session.wallet, signed.from);
          const match = parts.behaviour.match(kind, opened, { signed, control, bait });
          if (match === "held") throw new Problem("session_held", { detail: HELD });
          return match;
        },
      };
    },
  };
}

/** The two orders as the gate knows them. The second is withheld, so its `sell` is never reached. */
function orders(kind: BaitedKind, { behaviour }: BehaviourRouteParts): readonly [PaidRoute, PaidRoute] {
  const order = (id: string, price: bigint, sell: Selling<OrderInput>) =>
    paidRoute({
      id: `test.${kind.product}.${id}`,
      method: "POST",
      path: `/test/${kind.product}/attempt`,
      network: BEHAVIOUR_NETWORK,
      price,
      summary: kind.order,
      description: kind.order,
      input: ORDER,
      output: json(STEP),
      example: { input: {}, output: {} },
      answerWithheldMinutes: SESSION_MINUTES,
      sell,
    });
  return [
    order("first", kind.control, (sale) => behaviour.order(kind, sale)),
    order("second", kind.bait.value, () => Promise.reject(new Error("a withheld payment is never sold"))),
  ];
}

const HELD =
  "This order was offered to anyone who names the wallet, and the wallet's agent uses the token of a session: it answers at the next.url that its start gave it. No verdict came of this signature, and nothing was charged.";
