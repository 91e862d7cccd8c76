import type { Context } from "hono";
import { CONTEST_ROOM_SECONDS } from "../../packages/escrow/src/contest-terms.ts";
import { EVALUATION_ENTRIES, linkProof, type PublicLog } from "../log/index.ts";
import type { EscrowContract } from "../payments/index.ts";
import type { EscrowLimits } from "../platform/config/values.ts";
import { inPath, json, jsonOrPage } from "../platform/http/answer.ts";
import { Problem } from "../platform/http/errors.ts";
import { parseJson, readBody } from "../platform/http/request.ts";
import type { Route } from "../platform/http/route.ts";
import { mixedCaseBytes32 } from "../platform/http/schema.ts";
import { page, wantsHtml } from "../platform/page/page.ts";
import type { Hex } from "../platform/wallet.ts";
import { contestPath } from "./contest/contest-record.ts";
import { FORWARD } from "./delivery.ts";
import { renderEscrow, renderEvaluation } from "./escrow-page.ts";
import type { Ambiguous } from "./find-hold.ts";
import { escrowOverview, VERIFY_PATH } from "./overview.ts";
import type { Answered, Evaluation } from "./record.ts";
import { evaluationPath, type evaluationRecord } from "./record.ts";
import { ESCROW, EVALUATED, EVALUATION } from "./schemas.ts";
import type { Escrow, Refusal } from "./settle-deliveries.ts";

export interface EscrowRouteParts {
  readonly escrow: Escrow;
  readonly publicLog: PublicLog;
  readonly contracts: readonly EscrowContract[];
  readonly limits: EscrowLimits;
  readonly now: () => Date;
  readonly baseUrl: string;
}

/** Fits a delivery of 256 KiB as JSON, in base64 or with every character escaped. */
const MAX_FORWARD_BYTES = 2 * 1024 * 1024;

export function escrowRoutes(parts: EscrowRouteParts): readonly Route[] {
  const { contracts, limits, baseUrl } = parts;
  const verify = (path: string, summary: string): Route => ({
    method: "POST",
    path,
    summary,
    maxBodyBytes: MAX_FORWARD_BYTES,
    body: FORWARD,
    output: json(EVALUATED),
    problems: [
      "malformed_request",
      "not_the_merchant",
      "not_found",
      "payment_conflict",
      "escrow_over",
      "unacceptable",
      "payer_gas_spent",
    ],
    handle: (c) => forward(c, parts),
  });
  return [
    {
      method: "GET",
      path: "/escrow",
      summary: "The escrow: contracts, fee, verdict policy and how to integrate",
      output: jsonOrPage(ESCROW),
      handle(c) {
        const overview = escrowOverview(contracts, { limits, baseUrl });
        return wantsHtml(c) ? page(c, renderEscrow(overview, baseUrl)) : c.json(overview, 200, { vary: "Accept" });
      },
    },
    verify(VERIFY_PATH, "Forward a signed delivery from a merchant's server"),
    verify("/verify", "Forward a signed delivery, at the path stock forwarders use"),
    {
      method: "GET",
      path: "/escrow/evaluation/:payment",
      summary: "An evaluation's public record",
      parameters: [inPath({ name: "payment", description: "The payment's id.", schema: mixedCaseBytes32 })],
      output: jsonOrPage(EVALUATION),
      problems: ["not_found"],
      handle: (c) => evaluation(c, parts),
    },
  ];
}

const windowRefused = (detail: string) => () =>
  new Problem("unacceptable", { detail: `${detail} Nothing was decided.` });

const REFUSALS: Readonly<Record<Refusal, (now: Date) => Problem>> = {
  unknown_payment: () =>
    new Problem("not_found", {
      detail:
        "None of our escrow contracts holds this payment. Wait until the hold is mined, then forward the delivery again.",
    }),
  not_signed: () =>
    new Problem("not_the_merchant", {
      detail: "signature is missing: the merchant must sign Delivery; GET /escrow has the domain and the types.",
    }),
  wrong_signer: () =>
    new Problem("not_the_merchant", {
      detail:
        "The merchant did not sign this delivery: check paymentId, status, the SHA-256 of the body as sent, its content-type and content-encoding, and the window and conditions of contest, zero without one. No funds moved.",
    }),
  already_refunded: () =>
    new Problem("escrow_over", {
      detail: "This payment has been refunded or is being refunded; it is too late to deliver.",
    }),
  below_minimum: () =>
    new Problem("unacceptable", {
      detail:
        "This payment is below the smallest amount that this service evaluates (limits.minimum_amount at GET /escrow). From 30 minutes after the hold anyone can refund it to its buyer.",
    }),
  gas_spent: (now) =>
    new Problem("payer_gas_spent", {
      detail:
        "The fee of this payment does not pay for its release, and today's releases of this payer's holds have spent its daily allowance of gas (limits at GET /escrow). No other buyer is affected. Nothing was decided: forward the delivery again after midnight UTC. From 30 minutes after the hold anyone can refund the buyer.",
      headers: { "retry-after": String(secondsToMidnight(now)) },
    }),
  too_late_for_window: () =>
    new Problem("escrow_over", {
      detail: `The payer's window does not fit into the rest of the hold: a delivery is due its window and ${CONTEST_ROOM_SECONDS} seconds before anyone may refund. It is too late to deliver.`,
    }),
  other_delivery: () =>
    new Problem("payment_conflict", {
      detail: "Another delivery of this payment was evaluated; GET /escrow/evaluation/{payment} has its hash.",
    }),
  window_unsigned: windowRefused(
    "The payment's terms give its payer a window to contest. Sign it with contest {seconds, conditions, salt_nonce}.",
  ),
  no_window: windowRefused("The payment's terms have no window to contest. Sign it without contest."),
  wrong_window: windowRefused(
    "contest.seconds is not the window of the payment's terms: refundExpiry - authorizationExpiry - 86400.",
  ),
  unbound: windowRefused(
    "The payer did not sign these conditions: the payment's salt does not match contest.seconds, contest.conditions and contest.salt_nonce. GET /escrow explains how at contest.binding.",
  ),
  expired: () =>
    new Problem("escrow_over", {
      detail: "This payment's authorizationExpiry has passed or is too close for a release; it is too late to deliver.",
    }),
};

/** The most payments that a refusal lists. */
const MOST_LISTED = 50;

function ambiguous({ payments }: Ambiguous): Problem {
  const more = payments.length > MOST_LISTED ? `, and ${payments.length - MOST_LISTED} more` : "";
  const ids = `${payments.slice(0, MOST_LISTED).join(", ")}${more}`;
  return new Problem("unacceptable", {
    detail: `This transaction made several holds, and the signature does not show which of them the delivery is for. No funds moved. Send payment_id instead of transaction; it is one of: ${ids}.`,
  });
}

const secondsToMidnight = (now: Date): number => 86_400 - (Math.floor(now.getTime() / 1000) % 86_400);

async function forward(c: Context, { escrow, baseUrl, now }: EscrowRouteParts): Promise<Response> {
  const body = FORWARD.safeParse(parseJson(await readBody(c, MAX_FORWARD_BYTES)));
  if (!body.success) {
    const errors = body.error.issues.map((issue) => ({ path: issue.path.join("."), message: issue.message }));
    throw new Problem("malformed_request", { detail: "The body is not a forwarded delivery.", errors });
  }
  const outcome = await escrow.verify(body.data);
  if ("errors" in outcome)
    throw new Problem("unacceptable", {
      detail: "The arbiter's policy does not accept these conditions, so they could not be contested. No funds moved.",
      errors: outcome.errors,
    });
  if ("payments" in outcome) throw ambiguous(outcome);
  if ("refused" in outcome) throw REFUSALS[outcome.refused](now());
  return c.json(answer(outcome, baseUrl), 200, { "cache-control": "no-store" });
}

/** Returns the decision, or the outcome of the contest that changed it. */
const answer = ({ evaluation, contest, status, transaction }: Answered, baseUrl: string) => ({
  payment_id: evaluation.payment,
  decision: (contest ?? evaluation).decision,
  rule: (contest ?? evaluation).rule,
  record: (contest ?? evaluation).record,
  record_url: `${baseUrl}${(contest === null ? evaluationPath : contestPath)(evaluation.payment)}`,
  ...windowIn(evaluation, baseUrl),
  status,
  transaction,
});

function windowIn({ payment, document }: Evaluation, baseUrl: string) {
  const { contest } = JSON.parse(document) as ReturnType<typeof evaluationRecord>;
  if (contest === undefined) return {};
  const { seconds, until } = contest;
  return { contest: { seconds, until, url: `${baseUrl}${contestPath(payment)}` } };
}

async function evaluation(c: Context, { escrow, publicLog, baseUrl }: EscrowRouteParts): Promise<Response> {
  const payment = c.req.param("payment")?.toLowerCase() ?? "";
  const [found, places] = /^0x[0-9a-f]{64}$/.test(payment)
    ? await Promise.all([escrow.evaluation(payment as Hex), publicLog.places.of(payment, EVALUATION_ENTRIES.types)])
    : [null, []];
  if (found === null) throw new Problem("not_found", { detail: "There is no evaluation of this payment." });
  if (wantsHtml(c)) return page(c, renderEvaluation(found, places, baseUrl));
  linkProof(c, places);
  // These bytes never change, so they do not include later events on chain.
  return c.body(found.evaluation.document, 200, { "content-type": "application/json", vary: "Accept" });
}
