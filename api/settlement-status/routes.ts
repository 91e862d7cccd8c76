import type { Context } from "hono";
import { z } from "zod";
import { inQuery, json, optionalInQuery } from "../platform/http/answer.ts";
import { Problem } from "../platform/http/errors.ts";
import { type Clients, clientOf } from "../platform/http/request.ts";
import { paidRoute, type Route } from "../platform/http/route.ts";
import { mixedCaseBytes32, unixSeconds, walletText } from "../platform/http/schema.ts";
import { MAIN_NETWORK } from "../platform/networks.ts";
import type { Status } from "./decide.ts";
import type { LookUp } from "./look-up.ts";
import { NETWORK_NAMES, type Question, questionOf } from "./question.ts";
import type { HearAsked } from "./reading.ts";
import { SETTLEMENT, STATEMENT } from "./schemas.ts";
import type { Statements } from "./sell-statement.ts";
import { settlementDocument } from "./statement.ts";
import {
  EXAMPLE,
  STATEMENT_BODY,
  STATEMENT_PRICE,
  STATEMENT_REQUEST,
  type StatementRequest,
} from "./statement-request.ts";

export interface SettlementParts {
  readonly statements: Statements;
  readonly lookUp: LookUp;
  /** Spends a search from the client's budget. Returns false if the hourly budget is spent. */
  readonly maySearch: (client: string) => Promise<boolean>;
  readonly clients: Clients;
  readonly heard: readonly HearAsked[];
  readonly now: () => Date;
  /** Receives an error and a description of the failure. */
  readonly failed: (error: unknown, what: string) => void;
}

const FINAL_SECONDS = 86_400;
const AGAIN_SECONDS = "2";

export const settlementRoutes = (parts: SettlementParts): readonly Route[] => [
  paidRoute<StatementRequest>({
    id: "settlement",
    method: "POST",
    path: "/settlement",
    summary: "A signed statement of the status of a USDC authorization, no matter who signed it",
    description:
      "A signed statement that a USDC authorization (EIP-3009) has settled, can still settle, or, as a final block proves, never can.",
    terms: { networks: [MAIN_NETWORK], price: STATEMENT_PRICE },
    input: STATEMENT_REQUEST,
    body: STATEMENT_BODY,
    output: json(STATEMENT),
    intake: (request, _payer, { client }) => parts.statements.admit(request, client),
    example: EXAMPLE,
    sell: parts.statements.sell,
  }),
  {
    method: "GET",
    path: "/settlement",
    summary: "The status of a USDC authorization (EIP-3009), no matter who signed it: settled, pending or expired",
    parameters: [
      inQuery({ name: "network", description: "CAIP-2 identifier or key.", schema: z.enum(NETWORK_NAMES) }),
      inQuery({ name: "from", description: "The payer.", schema: walletText }),
      inQuery({ name: "nonce", description: "The authorization's nonce.", schema: mixedCaseBytes32 }),
      optionalInQuery({
        name: "valid_before",
        description: "The authorization's validBefore. Without it, the status is never `expired`.",
        schema: unixSeconds,
      }),
      optionalInQuery({
        name: "transaction",
        description: "A transaction that may have settled it. Needed only for an old authorization.",
        schema: mixedCaseBytes32,
      }),
    ],
    output: json(SETTLEMENT),
    problems: ["malformed_request", "not_available"],
    handle: (c) => statusOf(c, parts),
  },
];

async function statusOf(c: Context, parts: SettlementParts): Promise<Response> {
  const question = questionOf(new URL(c.req.url).searchParams);
  const client = clientOf(c, parts.clients);
  await tell(question, client, parts);
  const status = await parts
    .lookUp(question, { asker: client, maySearch: () => parts.maySearch(client) })
    .catch((error: unknown) => {
      parts.failed(error, "a settlement could not be looked up");
      throw new Problem("not_available", {
        detail:
          'The chain is unreachable, so this payment\'s status is unknown. Retry; do not treat this as "not settled".',
        headers: { "retry-after": AGAIN_SECONDS },
      });
    });
  return c.json(settlementDocument(question, status), 200, cachingOf(status));
}

/** Calls every listener, even if another one fails. */
async function tell(
  { network, from, nonce }: Question,
  client: string,
  { heard, now, failed }: SettlementParts,
): Promise<void> {
  const asked = { network, from, nonce, at: now(), client };
  const hearing = heard.map((hear) =>
    hear(asked).catch((error: unknown) => failed(error, "a listener failed on a question about a settlement")),
  );
  await Promise.all(hearing);
}

function cachingOf(status: Status): Record<string, string> {
  if (status.final) return { "cache-control": `public, max-age=${FINAL_SECONDS}, immutable` };
  return status.status === "used"
    ? { "cache-control": "no-store", "retry-after": AGAIN_SECONDS }
    : { "cache-control": "no-store" };
}
