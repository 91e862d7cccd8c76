import type { Context } from "hono";
import { z } from "zod";
import { readBody } from "../../kernel/body.ts";
import { Problem } from "../../kernel/errors.ts";
import { formatUsd } from "../../kernel/money.ts";
import { MAIN_NETWORK } from "../../kernel/networks.ts";
import { inQuery, json, optionalInQuery } from "../../kernel/output.ts";
import { type PaidRoute, paidRoute, type QuotedRoute, type Route, type Selling } from "../../kernel/route.ts";
import { mixedCaseAddress } from "../../kernel/schema.ts";
import { type Address, parseAddress } from "../../kernel/wallet.ts";
import type { TestOrder, TestOrdering } from "../erc8004/order.ts";
import { type BehaviouralKind, totalCost } from "../kinds/behavioural.ts";
import { BEHAVIOURAL_KINDS } from "../kinds/index.ts";
import { PRODUCTS } from "../products.ts";
import { RESULT_BODY, STEP } from "./behaviour-schemas.ts";
import type { BehaviouralTests, Opened, OrderInput } from "./run-session.ts";

export interface BehaviourRouteParts {
  readonly behaviour: BehaviouralTests;
  readonly ordering: TestOrdering;
  readonly baseUrl: string;
}

/** The network behavioural tests are paid on. */
export const BEHAVIOUR_NETWORK = MAIN_NETWORK;
const ORDER: z.ZodType<OrderInput> = z.object({ session: z.string(), token: z.string().nullable() });
const TOKEN = /^[A-Za-z0-9_-]{22}$/;
const WALLET = { name: "wallet", description: "The wallet that paid the entry.", schema: mixedCaseAddress };
const SESSION = {
  name: "session",
  description: "From the previous response's `next.url`; defaults to the wallet's newest open session.",
  schema: z.string().regex(TOKEN),
};

/** The three routes of every behavioural test. */
export const behaviourRoutes = (parts: BehaviourRouteParts): readonly Route[] =>
  BEHAVIOURAL_KINDS.flatMap((kind) => [startRoute(kind, parts), attemptRoute(kind, parts), resultRoute(kind, parts)]);

function startRoute(kind: BehaviouralKind, { behaviour, ordering, baseUrl }: BehaviourRouteParts): PaidRoute {
  const path = `/test/${kind.product}`;
  return paidRoute<TestOrder>({
    id: `test.${kind.product}`,
    method: "POST",
    path: `${path}/start`,
    network: BEHAVIOUR_NETWORK,
    price: kind.entry,
    summary: kind.summary,
    description: kind.description,
    ...ordering,
    output: json(STEP),
    example: {
      input: {},
      output: {
        status: "action_required",
        product: kind.product,
        next: { method: "POST", url: `${baseUrl}${path}/attempt?wallet=0x…&session=…`, cost: formatUsd(kind.control) },
        deliverable: { type: "session", id: "0123456789abcdef", orders: 2 },
        armed: true,
      },
    },
    menu: {
      capability: PRODUCTS[kind.product].capability,
      totalCost: totalCost(kind),
      steps: kind.steps,
      howToRun: `Point any x402 client at POST ${baseUrl}${path}/start and follow next.url. No body is needed.`,
    },
    sell: (sale) => behaviour.start(kind, sale),
    replayed: (payment) => behaviour.toldAgain(kind, payment),
  });
}

function attemptRoute(kind: BehaviouralKind, parts: BehaviourRouteParts): QuotedRoute {
  const [control, bait] = orders(kind, parts);
  return {
    method: "POST",
    path: `/test/${kind.product}/attempt`,
    summary: `The two orders of a running ${kind.product} test, one per call`,
    description: kind.order,
    parameters: [inQuery(WALLET), optionalInQuery(SESSION)],
    output: json(STEP),
    problems: ["not_found", "wrong_payer", "session_held", "session_over"],
    sales: [control, bait],
    async quote(c) {
      const opened = await sessionOf(kind, parts, { wallet: c.req.query("wallet"), session: c.req.query("session") });
      return {
        async offer() {
          const offer = await parts.behaviour.serve(kind, opened);
          if (offer === null) throw over(kind);
          return offer;
        },
        repeat: () => parts.behaviour.repeat(kind, opened),
        match(signed) {
          if (signed.from !== opened.session.wallet) {
            throw new Problem("wrong_payer", {
              detail: `This session belongs to ${opened.session.wallet}, but ${signed.from} signed the payment. Nothing was charged.`,
            });
          }
          const match = parts.behaviour.match(kind, opened, { signed, control, bait });
          if (match === "held") throw new Problem("session_held", { detail: HELD });
          return match;
        },
      };
    },
  };
}

/** The two orders as the gate knows them. The second is withheld, so its `sell` is never reached. */
function orders(kind: BehaviouralKind, { behaviour }: BehaviourRouteParts): readonly [PaidRoute, PaidRoute] {
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
      sell,
    });
  return [
    order("first", kind.control, (sale) => behaviour.order(kind, sale)),
    order("second", kind.bait.value, () => Promise.reject(new Error("a withheld payment is never sold"))),
  ];
}

function resultRoute(kind: BehaviouralKind, parts: BehaviourRouteParts): Route {
  return {
    method: "POST",
    path: `/test/${kind.product}/result`,
    summary: `The result of a ${kind.product} test, with its certificate`,
    body: RESULT_BODY,
    output: json(STEP),
    problems: ["malformed_request", "not_found"],
    async handle(c) {
      const opened = await sessionOf(kind, parts, await resultBody(c));
      return c.json(await parts.behaviour.result(kind, opened), 200, { "cache-control": "no-store" });
    },
  };
}

async function resultBody(c: Context): Promise<z.infer<typeof RESULT_BODY>> {
  const text = new TextDecoder().decode(await readBody(c));
  const body = RESULT_BODY.safeParse(tryParse(text));
  if (body.success) return body.data;
  throw new Problem("malformed_request", {
    detail: 'The body must be JSON like {"wallet": "0x…"}; session is optional.',
  });
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function sessionOf(
  kind: BehaviouralKind,
  { behaviour, baseUrl }: BehaviourRouteParts,
  asked: { readonly wallet?: string | undefined; readonly session?: string | undefined },
): Promise<Opened> {
  const wallet: Address | null = parseAddress(asked.wallet);
  const token = asked.session;
  if (wallet === null) {
    throw new Problem("malformed_request", {
      detail: "wallet must be the address that paid the entry: 0x and 40 hex digits.",
    });
  }
  const opened = token !== undefined && !TOKEN.test(token) ? null : await behaviour.find(kind, wallet, token ?? null);
  if (opened !== null) return opened;
  throw new Problem("not_found", {
    detail: `This wallet has no such ${kind.product} session. Start one with POST ${baseUrl}/test/${kind.product}/start.`,
  });
}

const HELD =
  "This order was offered to anyone who names the wallet, and the wallet's agent uses the token of a session: it answers at the next.url that its start gave it. No verdict came of this signature, and nothing was charged.";

const over = (kind: BehaviouralKind) =>
  new Problem("session_over", {
    detail: `This session has ended: it has a verdict or has timed out. Get the result from POST /test/${kind.product}/result, or start a new session.`,
  });
