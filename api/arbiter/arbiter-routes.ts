import type { Context } from "hono";
import { z } from "zod";
import { Problem } from "../kernel/errors.ts";
import { inPath, json, jsonOrPage, optionalInQuery } from "../kernel/output.ts";
import { type PaidRoute, paidRoute, type Route } from "../kernel/route.ts";
import { page, wantsHtml } from "../layout/negotiate.ts";
import type { Arbiter } from "./arbiter.ts";
import { ARBITER, claimBody, LOG, POLICY, VERDICT, verdictId } from "./arbiter-schemas.ts";
import { verdictPath } from "./document.ts";
import { EXAMPLE_INPUT, exampleOutput } from "./example.ts";
import { arbiterOverview, LOG_PATH, logItem, POLICY_PATH } from "./overview.ts";
import { renderArbiter } from "./pages/arbiter-page.ts";
import { renderPolicy } from "./pages/policy-page.ts";
import { renderVerdict } from "./pages/verdict-page.ts";
import { POLICY_V1 } from "./policy/v1/policy.ts";
import { ARBITER_NETWORK, PRICES, type Variant } from "./products.ts";
import { type RequestSettings, requestSchema } from "./request.ts";

export interface ArbiterRouteParts {
  readonly arbiter: Arbiter;
  readonly claims: RequestSettings;
  readonly baseUrl: string;
}

const LOG_PAGE = 100;
const CORRECTIONS = 20;

export const arbiterRoutes = (parts: ArbiterRouteParts): readonly Route[] => [
  verifyRoute("plain", parts),
  verifyRoute("scored", parts),
  {
    method: "GET",
    path: "/arbiter",
    summary: "The external arbiter: what it verifies, who signs, its log and corrections",
    output: jsonOrPage(ARBITER),
    handle: (c) => overview(c, parts),
  },
  {
    method: "GET",
    path: POLICY_PATH,
    summary: "The arbiter's published policy: rules and decision tables",
    output: jsonOrPage(POLICY),
    handle: (c) =>
      wantsHtml(c) ? page(c, renderPolicy(POLICY_V1, parts.baseUrl)) : c.json(POLICY_V1, 200, { vary: "Accept" }),
  },
  {
    method: "GET",
    path: LOG_PATH,
    summary: "All verdicts, newest first, with the hashes that chain them",
    parameters: [
      optionalInQuery({ name: "before", description: "Only those before this index.", schema: z.int().min(1) }),
    ],
    output: json(LOG),
    problems: ["malformed_request"],
    handle: (c) => log(c, parts),
  },
  {
    method: "GET",
    path: "/arbiter/verdict/:id",
    summary: "The public permanent record of a verdict",
    parameters: [inPath({ name: "id", description: "The verdict's id.", schema: verdictId })],
    output: jsonOrPage(VERDICT.record),
    problems: ["not_found"],
    handle: (c) => verdict(c, parts),
  },
];

const VARIANTS = {
  plain: {
    id: "arbiter.verify",
    path: "/arbiter/verify",
    summary: "A signed verdict on a machine-verifiable delivery",
    description:
      "Verifies a delivery claim (http-delivery, payload-hash or ci-status) by published rules and returns a signed verdict: release, refund or escalate.",
  },
  scored: {
    id: "arbiter.verify.scored",
    path: "/arbiter/verify/scored",
    summary: "A signed verdict with both parties' risk tiers",
    description:
      "The same verdict as /arbiter/verify, with the risk tiers of payer and payee in the signed document. They never change it.",
  },
} as const;

const verifyRoute = (variant: Variant, { arbiter, claims, baseUrl }: ArbiterRouteParts): PaidRoute =>
  paidRoute({
    ...VARIANTS[variant],
    method: "POST",
    network: ARBITER_NETWORK,
    price: PRICES[variant],
    input: requestSchema(claims),
    body: claimBody(claims),
    output: json(VERDICT[variant]),
    intake: (request) => arbiter.admit(request, variant),
    example: { input: EXAMPLE_INPUT[variant], output: exampleOutput(variant, baseUrl) },
    async sell(sale) {
      const { id, document } = await arbiter.decide(sale, variant);
      return { status: 200, body: JSON.parse(document), location: verdictPath(id), record: async () => undefined };
    },
  });

async function overview(c: Context, { arbiter, baseUrl }: ArbiterRouteParts): Promise<Response> {
  const [totals, [head = null], corrections] = await Promise.all([
    arbiter.totals(),
    arbiter.log({ before: null, limit: 1 }),
    arbiter.corrections(CORRECTIONS),
  ]);
  const document = arbiterOverview({ attestor: arbiter.attestor, totals, head, corrections, baseUrl });
  return wantsHtml(c) ? page(c, renderArbiter(document, baseUrl)) : c.json(document, 200, { vary: "Accept" });
}

async function log(c: Context, { arbiter, baseUrl }: ArbiterRouteParts): Promise<Response> {
  const text = c.req.query("before");
  if (text !== undefined && !/^[1-9]\d{0,14}$/.test(text))
    throw new Problem("malformed_request", {
      detail: "The query parameter before must be an index of the log, from 1.",
    });
  const entries = await arbiter.log({ before: text === undefined ? null : Number(text), limit: LOG_PAGE });
  const last = entries.at(-1)?.index ?? 1;
  return c.json({
    verdicts: entries.map((entry) => logItem(entry, baseUrl)),
    next: last > 1 ? `${baseUrl}${LOG_PATH}?before=${last}` : null,
  });
}

async function verdict(c: Context, { arbiter, baseUrl }: ArbiterRouteParts): Promise<Response> {
  const id = c.req.param("id") ?? "";
  const stored = /^[0-9a-f]{32}$/.test(id) ? await arbiter.get(id) : null;
  if (stored === null) throw new Problem("not_found", { detail: `There is no verdict ${id.slice(0, 40)}.` });
  const links = [
    ...(stored.supersedes === null ? [] : [`<${verdictPath(stored.supersedes)}>; rel="predecessor-version"`]),
    ...(stored.supersededBy === null ? [] : [`<${verdictPath(stored.supersededBy)}>; rel="successor-version"`]),
  ];
  if (links.length > 0) c.header("link", links.join(", "));
  if (wantsHtml(c)) return page(c, renderVerdict(stored, baseUrl));
  // The same bytes for ever: what superseded it later is in the header.
  return c.body(stored.document, 200, { "content-type": "application/json", vary: "Accept" });
}
