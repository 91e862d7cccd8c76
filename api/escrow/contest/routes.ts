import type { Context } from "hono";
import { EVALUATION_ENTRIES, linkProof, type PublicLog } from "../../log/index.ts";
import { inPath, json, jsonOrPage } from "../../platform/http/answer.ts";
import { Problem } from "../../platform/http/errors.ts";
import { MAX_BODY_BYTES, parseJson, readBody } from "../../platform/http/request.ts";
import type { Route } from "../../platform/http/route.ts";
import { mixedCaseBytes32 } from "../../platform/http/schema.ts";
import { page, wantsHtml } from "../../platform/page/page.ts";
import type { Hex } from "../../platform/wallet.ts";
import type { Escrow } from "../settle-deliveries.ts";
import type { ContestRefusal } from "./answer-contests.ts";
import { CONTEST, claimSha256, GROUNDS } from "./claim.ts";
import { renderContest } from "./contest-page.ts";
import { CONTEST_PATH } from "./contest-record.ts";
import { contestView } from "./contest-view.ts";
import { CONTESTED } from "./schemas.ts";

export interface ContestRouteParts {
  readonly escrow: Escrow;
  readonly publicLog: PublicLog;
  readonly baseUrl: string;
}

export const contestRoutes = (parts: ContestRouteParts): readonly Route[] => [
  {
    method: "POST",
    path: CONTEST_PATH,
    summary: "Contest a delivery before its release: signed by the buyer, once, free",
    body: CONTEST,
    output: json(CONTESTED),
    problems: ["malformed_request", "not_the_payer", "not_found", "contest_conflict", "contest_over", "unacceptable"],
    handle: (c) => contest(c, parts),
  },
  {
    method: "GET",
    path: `${CONTEST_PATH}/:payment`,
    summary: "A payment's contest window, its buyer's contest, and the signed answer",
    parameters: [inPath({ name: "payment", description: "The payment's id.", schema: mixedCaseBytes32 })],
    output: jsonOrPage(CONTESTED),
    problems: ["not_found"],
    handle: (c) => show(c, parts),
  },
];

const REFUSALS: Readonly<Record<ContestRefusal, () => Problem>> = {
  no_window: () =>
    new Problem("not_found", {
      detail:
        "This payment cannot be contested because no good delivery of it was evaluated or its terms have no window (refundExpiry is not a day and 1 to 1200 seconds after authorizationExpiry).",
    }),
  not_the_payer: () =>
    new Problem("not_the_payer", {
      detail:
        "The payment's payer did not sign this contest: check paymentId, claimSha256 (of the canonical JSON of claim as sent), and the domain of the payment's contract; GET /escrow has them at contest. Nothing was changed.",
    }),
  other_contest: () =>
    new Problem("contest_conflict", {
      detail:
        "This payment was contested before, with another claim. A payer can contest once; GET /escrow/contest/{payment} has it.",
    }),
  over: () =>
    new Problem("contest_over", {
      detail: "The window of this payment is closed because its release or refund has been decided.",
    }),
};

async function contest(c: Context, { escrow, baseUrl }: ContestRouteParts): Promise<Response> {
  const given = parseJson(await readBody(c, MAX_BODY_BYTES));
  refuseOtherGrounds(given);
  const body = CONTEST.safeParse(given);
  if (!body.success) {
    const errors = body.error.issues.map((issue) => ({ path: issue.path.join("."), message: issue.message }));
    throw new Problem("malformed_request", {
      detail: "The body is not a contest {payment_id, claim, signature}.",
      errors,
    });
  }
  const { payment_id: payment, claim, signature } = body.data;
  const posted = { payment, claim, claimSha256: claimSha256((given as { claim: unknown }).claim), signature };
  const outcome = await escrow.contest(posted);
  if ("refused" in outcome) throw REFUSALS[outcome.refused]();
  const replayed = outcome.isReplay ? { "x-idempotent-replay": "true" } : {};
  return c.json(await viewOf(escrow, payment, baseUrl), 200, { "cache-control": "no-store", ...replayed });
}

/** A claim that names an unknown ground, or conditions for one, is well formed but refused. */
function refuseOtherGrounds(given: unknown): void {
  const { claim } = (given ?? {}) as { claim?: unknown };
  if (typeof claim !== "object" || claim === null) return;
  const { category, ...rest } = claim as Record<string, unknown>;
  if (typeof category === "string" && !GROUNDS.some((name) => name === category))
    throw new Problem("unacceptable", {
      detail: `A contest needs a ground that a machine can verify: claim.category is one of ${GROUNDS.join(", ")}.`,
    });
  const own = Object.keys(rest).find((name) => name !== "delivery");
  if (typeof category === "string" && own !== undefined)
    throw new Problem("unacceptable", {
      detail: `A contest runs the conditions that the offer had and no others: claim has no ${own.slice(0, 60)}.`,
    });
}

async function viewOf(escrow: Escrow, payment: Hex, baseUrl: string) {
  const [view, answered] = await Promise.all([escrow.view(payment), escrow.evaluation(payment)]);
  if (view === null || answered === null)
    throw new Problem("not_found", { detail: "This payment has no contest window." });
  return contestView(view, answered, baseUrl);
}

async function show(c: Context, { escrow, publicLog, baseUrl }: ContestRouteParts): Promise<Response> {
  const payment = c.req.param("payment")?.toLowerCase() ?? "";
  if (!/^0x[0-9a-f]{64}$/.test(payment))
    throw new Problem("not_found", { detail: "This payment has no contest window." });
  const [view, places] = await Promise.all([
    viewOf(escrow, payment as Hex, baseUrl),
    publicLog.places.of(payment, EVALUATION_ENTRIES.types),
  ]);
  if (wantsHtml(c)) return page(c, renderContest(view, places, baseUrl));
  linkProof(c, places);
  return c.json(view, 200, { vary: "Accept", "cache-control": "no-store" });
}
