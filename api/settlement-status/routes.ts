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
  readonly lookUp: LookUp;
  /** Lets a client's search through; false if the hour's are spent. */
  readonly maySearch: (client: string) => Promise<boolean>;
  readonly clients: Clients;
  readonly heard: readonly HearAsked[];
  readonly now: () => Date;
  /** Receives what was not answered, and why. */
  readonly failed: (error: unknown, what: string) => void;
}

export interface SettlementRouteParts {
  readonly settlements: SettlementParts;
  readonly statements: Statements;
}

const FINAL_SECONDS = 86_400;
const AGAIN_SECONDS = "2";

export const settlementRoutes = ({ settlements, statements }: SettlementRouteParts): readonly Route[] => [
  paidRoute<StatementRequest>({
    id: "settlement",
    method: "POST",
    path: "/settlement",
    summary: "A signed statement of what became of a USDC authorization, no matter who signed it",
    description:
      "A signed statement whether a USDC authorization (EIP-3009) has settled, can still settle, or never can, which a final block proves.",
    terms: { networks: [MAIN_NETWORK], price: STATEMENT_PRICE },
    input: STATEMENT_REQUEST,
    body: STATEMENT_BODY,
    output: json(STATEMENT),
    intake: (request, _payer, { client }) => statements.admit(request, client),
    example: EXAMPLE,
    sell: statements.sell,
  }),
  {
    method: "GET",
    path: "/settlement",
    summary: "What became of a USDC authorization (EIP-3009), no matter who signed it: settled, pending or expired",
    parameters: [
      inQuery({ name: "network", description: "CAIP-2 identifier or key.", schema: z.enum(NETWORK_NAMES) }),
      inQuery({ name: "from", description: "The payer.", schema: walletText }),
      inQuery({ name: "nonce", description: "The authorization's nonce.", schema: mixedCaseBytes32 }),
      optionalInQuery({
        name: "valid_before",
        description: "The authorization's validBefore. Without it, nothing is ever `expired`.",
        schema: unixSeconds,
      }),
      optionalInQuery({
        name: "transaction",
        description: "A transaction that may have settled it, for one that is old.",
        schema: mixedCaseBytes32,
      }),
    ],
    output: json(SETTLEMENT),
    problems: ["malformed_request", "not_available"],
    handle: (c) => statusOf(c, settlements),
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
        detail: "The chain cannot be read at the moment. Nothing is known: do not take this for any answer.",
        headers: { "retry-after": AGAIN_SECONDS },
      });
    });
  return c.json(settlementDocument(question, status), 200, cachingOf(status));
}

/** Each hears of it, whatever the others do. */
async function tell(
  { network, from, nonce }: Question,
  client: string,
  { heard, now, failed }: SettlementParts,
): Promise<void> {
  const asked = { network, from, nonce, at: now(), client };
  const hearing = heard.map((hear) =>
    hear(asked).catch((error: unknown) => failed(error, "a question about a settlement was not heard")),
  );
  await Promise.all(hearing);
}

function cachingOf(status: Status): Record<string, string> {
  if (status.final) return { "cache-control": `public, max-age=${FINAL_SECONDS}, immutable` };
  return status.status === "used"
    ? { "cache-control": "no-store", "retry-after": AGAIN_SECONDS }
    : { "cache-control": "no-store" };
}
