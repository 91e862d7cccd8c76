import { answered, inPath, json, jsonAnswer } from "../../platform/http/answer.ts";
import { Problem } from "../../platform/http/errors.ts";
import { type NotYet, type PaidRoute, paidRoute, type Route } from "../../platform/http/route.ts";
import { NETWORKS } from "../../platform/networks.ts";
import type { Address } from "../../platform/wallet.ts";
import type { ExamAccount } from "../exam-account.ts";
import { EXAM_BODY, EXAM_REQUEST, orderId } from "../exam-request.ts";
import type { ExaminableQuote, LookParts } from "../look.ts";
import { EXAM_PRICE, MOST_OPEN, PAYMENTS_A_RUN } from "../products.ts";
import { examId } from "../schemas.ts";
import { admitOrder, prepareOrder } from "../take-order.ts";
import {
  type PassingShop,
  REHEARSAL_NETWORK,
  REHEARSAL_ORDERED,
  rehearsalDocument,
  SELLER_REHEARSAL,
} from "./rehearsal.ts";
import type { RehearsalStore } from "./rehearsal-store.ts";

export interface RehearsalRouteParts extends LookParts {
  readonly store: RehearsalStore;
  /** Null if no account pays. */
  readonly account: ExamAccount | null;
  /** The key from which IDs are derived. */
  readonly secret: Uint8Array;
  readonly baseUrl: string;
  readonly passingShop: PassingShop;
}

const { money } = NETWORKS[REHEARSAL_NETWORK];

export const rehearsalRoutes = (parts: RehearsalRouteParts): readonly Route[] => [
  orderRoute(parts),
  {
    method: "GET",
    path: "/rehearsal/seller/:id",
    summary: "How a rehearsal of the seller's exam ended, with a remedy for each finding",
    parameters: [inPath({ name: "id", description: "The rehearsal's id.", schema: examId })],
    output: json(SELLER_REHEARSAL),
    problems: ["not_found"],
    async handle(c) {
      const id = c.req.param("id") ?? "";
      const rehearsal = await parts.store.get(id);
      if (rehearsal === null)
        throw new Problem("not_found", {
          detail: `There is no rehearsal ${id.slice(0, 40)}. A rehearsal is kept for a day.`,
        });
      return c.json(rehearsalDocument(rehearsal, parts), 200, { "cache-control": "no-store" });
    },
  },
];

const orderRoute = (parts: RehearsalRouteParts): PaidRoute =>
  paidRoute({
    id: "rehearsal.seller",
    method: "POST",
    path: "/rehearsal/seller",
    terms: {
      networks: [REHEARSAL_NETWORK],
      price: EXAM_PRICE,
      ...(parts.account === null ? { closed: "No account is set up to pay for rehearsals." } : {}),
    },
    summary: "Rehearsal: an exam of a paid x402 endpoint, by a buyer that pays",
    description: `The seller's exam in ${money}: nothing is recorded or published. The endpoint has to quote ${money}. The result shows what failed and how to fix it, with a shop that passes.`,
    input: EXAM_REQUEST,
    body: EXAM_BODY,
    output: json(REHEARSAL_ORDERED),
    hooks: {
      prepare: (request, client) =>
        prepareOrder(parts, request, { client, wait: (prospect) => noRoom(parts, prospect) }),
    },
    // As for an exam, the origin must name the wallet.
    intake: (request, wallet) => admitOrder(parts, request, { wallet, open: (prospect) => noRoom(parts, prospect) }),
    example: {
      input: { url: "https://seller.example/haiku" },
      output: rehearsalDocument({ id: "6f1c2b7d9e0a4c5f8b3d2e1f0a9c8b7d", order: EXAMPLE, result: null }, parts),
    },
    sell: {
      immediate({ input, payment }) {
        const { url, method, body, contentType, other, settled } = input;
        if (settled === null) throw new Error("a rehearsal was sold without an intake");
        const { origin, payTo, amount, consent } = settled;
        const id = orderId("rehearsal", payment, parts.secret);
        const order = { url, method, body, contentType, other, payTo, amount, prefix: consent.prefix };
        const location = `/rehearsal/seller/${id}`;
        const document = rehearsalDocument({ id, order, result: null }, parts);
        return answered(jsonAnswer(document, { location }), [parts.store.adding(id, origin, order)]);
      },
    },
  });

const EXAMPLE = {
  url: "https://seller.example/haiku",
  method: "GET",
  body: null,
  contentType: "application/json",
  other: null,
  payTo: `0x${"5e".repeat(20)}` as Address,
  amount: "10000",
  prefix: "/",
};

async function noRoom({ store, account }: RehearsalRouteParts, { amount }: ExaminableQuote): Promise<NotYet | null> {
  const [open, balance] = await Promise.all([store.open(), account?.balance() ?? 0n]);
  const later = (detail: string): NotYet => ({ detail, retryAfterSeconds: 60, isSpent: false });
  if (open.count >= MOST_OPEN) return later(`${open.count} rehearsals wait or run; no more are taken until one ends.`);
  if (PAYMENTS_A_RUN * (open.amount + amount) + BigInt(open.count) + 1n > balance)
    return later(`The account that pays in rehearsals is short of ${money}.`);
  return null;
}
