import type { Context } from "hono";
import { z } from "zod";
import { type Completion, inQuery, json, optionalInQuery } from "../../platform/http/answer.ts";
import { Problem } from "../../platform/http/errors.ts";
import { type Clients, clientOf, readJson } from "../../platform/http/request.ts";
import {
  type MenuFacts,
  type PaidRoute,
  type PaymentKey,
  paidRoute,
  type QuotedRoute,
  type Route,
  type Sale,
  type Selling,
} from "../../platform/http/route.ts";
import { walletText } from "../../platform/http/schema.ts";
import { type Atomic, formatUsd } from "../../platform/money.ts";
import { NETWORKS } from "../../platform/networks.ts";
import { type Address, readWallet } from "../../platform/wallet.ts";
import type { TestOrdering } from "../agent-registries/order.ts";
import { VALID_FOR_DAYS } from "../certificate.ts";
import type { BehavioralKind } from "../kinds/kind.ts";
import { PRODUCTS } from "../products.ts";
import { REHEARSAL_STEP } from "./rehearsal.ts";
import type { Asking, BaitedTest } from "./run-session.ts";
import { ORDER_INPUT, RESULT_BODY, STEP } from "./schemas.ts";
import { RECORDED, REHEARSAL, SESSION_MINUTES, type Started, senderOf, type TestMode } from "./session.ts";

const TOKEN = /^[A-Za-z0-9_-]{22}$/;

export const WALLET = inQuery({
  name: "wallet",
  description: "The wallet that paid the entry.",
  schema: walletText,
});
const SESSION = optionalInQuery({
  name: "session",
  description: "From the previous response's `next.url`; defaults to the wallet's newest open session.",
  schema: z.string().regex(TOKEN),
});

export const SESSION_TOKEN = inQuery({
  name: "session",
  description: "The session's token, from the `next.url` of the answer to the start.",
  schema: z.string().regex(TOKEN),
});

/** A behavioral test as its routes call it. `Found` is a session found by a caller. */
interface SessionTest<Found> {
  readonly kind: BehavioralKind;
  readonly mode: TestMode;
  readonly totalCost: Atomic;
  /** The price of the first order. */
  readonly firstOrder: Atomic;
  start(sale: Sale<Started>): Promise<Completion>;
  beforeResult(entry: PaymentKey, client: string): Promise<void>;
  find(asked: Asking): Promise<Found | null>;
  result(found: Found): Promise<object>;
}

export interface TestRouteParts<Test> {
  readonly test: Test;
  readonly ordering: TestOrdering;
  readonly baseUrl: string;
  readonly peers: Clients;
}

export function startRoute<Found>({
  test,
  ordering,
  baseUrl,
}: Omit<TestRouteParts<SessionTest<Found>>, "peers">): PaidRoute {
  const { kind, mode } = test;
  const path = pathOf(test);
  const isRehearsal = mode === REHEARSAL;
  return paidRoute<Started>({
    id: `${mode.name}.${kind.product}`,
    method: "POST",
    path: `${path}/start`,
    terms: { networks: [mode.network], price: kind.entry },
    summary: isRehearsal ? `Rehearsal: ${kind.summary}` : kind.summary,
    description: isRehearsal ? REHEARSAL_OF(kind) : kind.description,
    ...startingWith(ordering),
    output: json(stepOf(mode)),
    example: {
      input: {},
      output: {
        status: "action_required",
        product: kind.product,
        next: {
          method: "POST",
          url: `${baseUrl}${path}/attempt?wallet=0x…&session=…`,
          cost: formatUsd(test.firstOrder),
        },
        deliverable: { type: "session", id: "0123456789abcdef", orders: 2 },
        armed: true,
      },
    },
    ...(isRehearsal ? {} : { menu: menuOf(test, baseUrl) }),
    sell: (sale) => test.start(sale),
    hooks: { beforeResult: (payment, client) => test.beforeResult(payment, client) },
  });
}

type AtPath = Pick<SessionTest<unknown>, "kind" | "mode">;

export const pathOf = ({ kind, mode }: AtPath): string => `/${mode.name}/${kind.product}`;

export const stepOf = (mode: TestMode) => (mode === REHEARSAL ? REHEARSAL_STEP : STEP);

/** Returns a test's name for summaries. */
export const nameOf = ({ kind, mode }: AtPath): string =>
  mode === REHEARSAL ? `rehearsal of the ${kind.product} test` : `${kind.product} test`;

const REHEARSAL_OF = ({ product }: BehavioralKind): string =>
  `The ${product} test in ${NETWORKS[REHEARSAL.network].money}: no certificate, and nothing is recorded or published. The answer explains what went wrong, with a program that passes.`;

function menuOf<Found>({ kind, totalCost }: SessionTest<Found>, baseUrl: string): MenuFacts {
  const start = `${baseUrl}${pathOf({ kind, mode: RECORDED })}/start`;
  return {
    capability: PRODUCTS[kind.product].capability,
    totalCost,
    steps: [
      `Rehearse first: POST ${pathOf({ kind, mode: REHEARSAL })}/start runs the same test in ${NETWORKS[REHEARSAL.network].money} and records nothing. A FAIL of the real test is public and permanent and counts for ${VALID_FOR_DAYS} days, so use a separate wallet.`,
      ...kind.steps,
    ],
    howToRun: `Point any x402 client at POST ${start} and follow next.url. No body is needed.`,
  };
}

/**
 * Returns the input of a start: the order, and the sender of the entry, recorded before anyone else can have its
 * header.
 */
function startingWith({
  input,
  intake,
  ...documented
}: TestOrdering): Pick<PaidRoute<Started>, "input" | "body" | "intake"> {
  return {
    ...documented,
    input: input.transform((order) => ({ order, sender: "" })),
    async intake({ order }, payer, asked) {
      const taken = intake === undefined ? { input: order } : await intake(order, payer, asked);
      if (!("input" in taken)) return taken;
      return { input: { order: taken.input, sender: senderOf(payer, asked.client).toString("hex") } };
    },
  };
}

/** Creates the route that returns a session's verdict, or the remaining steps. */
export function resultRoute<Found>(parts: Omit<TestRouteParts<SessionTest<Found>>, "ordering">): Route {
  const { test } = parts;
  const { kind, mode } = test;
  return {
    method: "POST",
    path: `${pathOf(test)}/result`,
    summary:
      mode === REHEARSAL
        ? `How a rehearsal of the ${kind.product} test ended`
        : `The result of a ${kind.product} test, with its certificate`,
    body: RESULT_BODY,
    output: json(stepOf(mode)),
    problems: ["malformed_request", "not_found"],
    async handle(c) {
      const { wallet, session } = await readJson(c, RESULT_BODY, EXPECTED);
      const found = await sessionOf(parts, c, { wallet, session });
      return c.json(await test.result(found), 200, { "cache-control": "no-store" });
    },
  };
}

const EXPECTED = 'The body must be JSON like {"wallet": "0x…"}; session is optional.';

/** Returns the session that a caller names. */
export async function sessionOf<Found>(
  { test: { kind, mode, find }, baseUrl, peers }: Omit<TestRouteParts<SessionTest<Found>>, "ordering">,
  c: Context,
  asked: { readonly wallet?: string | undefined; readonly session?: string | undefined },
): Promise<Found> {
  const read = readWallet(asked.wallet);
  const { session: token } = asked;
  if ("malformed" in read)
    throw new Problem("malformed_request", {
      detail: `wallet must be the address that paid the entry; ${read.malformed}.`,
    });
  const { wallet } = read;
  const asking = { wallet, token: token ?? null, client: clientOf(c, peers) };
  const found = token !== undefined && !TOKEN.test(token) ? null : await find(asking);
  if (found !== null) return found;
  const isOpen = token !== undefined && (await find({ ...asking, token: null })) !== null;
  throw new Problem("not_found", {
    detail: isOpen
      ? `This wallet has a ${kind.product} session, but \`session\` is not its token. The token is in the next.url of the answer to its start: send the start's payment header again to get that answer.`
      : `This wallet has no ${kind.product} session. Start one with POST ${baseUrl}${pathOf({ kind, mode })}/start.`,
  });
}

/** Refuses a payment by a wallet other than the session's. */
export function refuseOthers(wallet: Address, signer: Address): void {
  if (signer === wallet) return;
  throw new Problem("wrong_payer", {
    detail: `This session belongs to ${wallet}, but ${signer} signed the payment. Nothing was charged.`,
  });
}

/** Returns the three routes of a behavioral test with a bait. */
export const baitedRoutes = (parts: TestRouteParts<BaitedTest>): readonly Route[] => [
  startRoute(parts),
  attemptRoute(parts),
  resultRoute(parts),
];

function attemptRoute(parts: TestRouteParts<BaitedTest>): QuotedRoute {
  const { test } = parts;
  const control = orderRoute(test, {
    ...{ id: "first", price: test.kind.control, input: ORDER_INPUT },
    sell: (sale) => test.order(sale),
  });
  const bait = orderRoute(test, {
    ...{ id: "second", price: test.kind.bait.value, input: ORDER_INPUT },
    sell: () => Promise.reject(new Error("a withheld payment is never sold")),
  });
  return {
    method: "POST",
    path: `${pathOf(test)}/attempt`,
    summary: `The two orders of a running ${nameOf(test)}, one per call`,
    description: test.kind.order,
    parameters: [WALLET, SESSION],
    output: json(stepOf(test.mode)),
    problems: ["not_found", "wrong_payer", "session_held", "session_over"],
    sales: [control, bait],
    async quote(c) {
      const opened = await sessionOf(parts, c, { wallet: c.req.query("wallet"), session: c.req.query("session") });
      return {
        async offer() {
          const offer = await test.serve(opened);
          if (typeof offer === "string") throw new Problem("session_over", { detail: offer });
          return offer;
        },
        repeat: () => test.repeat(opened),
        match(signed) {
          refuseOthers(opened.session.wallet, signed.from);
          const match = test.match(opened, { signed, control, bait });
          if (match === "held") throw new Problem("session_held", { detail: HELD });
          return match;
        },
      };
    },
  };
}

interface SoldOrder<Input> {
  readonly id: "first" | "second";
  readonly price: Atomic;
  readonly input: z.ZodType<Input>;
  readonly sell: Selling<Input>;
}

/** Returns an order of a session as the gate knows it. */
export const orderRoute = <Input>({ kind, mode }: AtPath, { id, price, input, sell }: SoldOrder<Input>): PaidRoute =>
  paidRoute<Input>({
    id: `${mode.name}.${kind.product}.${id}`,
    method: "POST",
    path: `${pathOf({ kind, mode })}/attempt`,
    terms: { networks: [mode.network], price },
    summary: kind.order,
    description: kind.order,
    input,
    output: json(stepOf(mode)),
    example: { input: {}, output: {} },
    privacy: { answerWithheldMinutes: SESSION_MINUTES },
    sell,
  });

const HELD =
  "This order was offered to anyone who names the wallet, but the wallet's agent uses the token of a session and answers at the next.url from its start. This signature did not lead to a verdict, and nothing was charged.";
