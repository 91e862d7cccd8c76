import type { Context } from "hono";
import { z } from "zod";
import { linkProof, type PublicLog, VERDICT_ENTRIES } from "../log/index.ts";
import { inPath, json, jsonOrPage, optionalInQuery } from "../platform/http/answer.ts";
import { Problem } from "../platform/http/errors.ts";
import { type PaidRoute, paidRoute, type Route } from "../platform/http/route.ts";
import { page, wantsHtml } from "../platform/page/page.ts";
import type { Address } from "../platform/wallet.ts";
import type { Arbiter } from "./arbiter.ts";
import { openCategories } from "./claim.ts";
import { verdictPath } from "./document.ts";
import { verdictId } from "./facts.ts";
import {
  arbiterOverview,
  EXAMPLE_INPUT,
  exampleOutput,
  LOG_PATH,
  logItem,
  POLICY_PATH,
  policyPath,
} from "./overview.ts";
import { renderArbiter } from "./pages/arbiter-page.ts";
import { renderPolicy } from "./pages/policy-page.ts";
import { renderVerdict } from "./pages/verdict-page.ts";
import type { Category } from "./policy/category.ts";
import { ARBITER_NETWORK, PRICES, type Variant } from "./products.ts";
import { type RequestSettings, requestSchema } from "./request.ts";
import { ARBITER, claimBody, LOG, POLICY, VERDICT } from "./schemas.ts";

export interface ArbiterRouteParts {
  readonly arbiter: Arbiter;
  readonly claims: RequestSettings;
  readonly publicLog: PublicLog;
  /** The evaluator contract of ERC-8183 jobs, or null if there is none. */
  readonly evaluator: Address | null;
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
    parameters: [
      optionalInQuery({
        name: "version",
        description: "The version; defaults to the earliest that still decides claims.",
        schema: z.int().min(1),
      }),
    ],
    output: jsonOrPage(POLICY),
    problems: ["malformed_request", "not_found"],
    handle: async (c) => policy(c, parts),
  },
  {
    method: "GET",
    path: LOG_PATH,
    summary: "All verdicts, newest first, with the SHA-256 of each",
    parameters: [
      optionalInQuery({ name: "before", description: "Only verdicts before the one with this id.", schema: verdictId }),
    ],
    output: json(LOG),
    problems: ["malformed_request"],
    handle: (c) => log(c, parts),
  },
  {
    method: "GET",
    path: "/arbiter/verdict/:id",
    summary: "A verdict's permanent public record",
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
    description: (categories: string) =>
      `Verifies a delivery claim (${categories}) by published rules and returns a signed verdict: release, refund or escalate.`,
  },
  scored: {
    id: "arbiter.verify.scored",
    path: "/arbiter/verify/scored",
    summary: "A signed verdict with both parties' risk tiers",
    description: () =>
      "The same verdict as /arbiter/verify, with the risk tiers of payer and payee in the signed document. The tiers never affect the verdict.",
  },
} as const;

const verifyRoute = (variant: Variant, { arbiter, claims, baseUrl }: ArbiterRouteParts): PaidRoute =>
  paidRoute({
    ...VARIANTS[variant],
    description: VARIANTS[variant].description(eitherOf(openCategories(claims))),
    method: "POST",
    terms: { networks: [ARBITER_NETWORK], price: PRICES[variant] },
    input: requestSchema(claims),
    body: claimBody(claims),
    output: json(VERDICT[variant]),
    ...(variant === "scored" ? { hooks: { prepare: arbiter.prepare } } : {}),
    intake: (request, payer) => arbiter.admit(request, { payer, variant }),
    example: { input: EXAMPLE_INPUT[variant], output: exampleOutput(variant, { baseUrl, now: claims.now() }) },
    sell: (sale) => arbiter.decide(sale, variant),
  });

const eitherOf = (categories: readonly Category[]): string =>
  new Intl.ListFormat("en-GB", { type: "disjunction" }).format(new Set(categories.map(({ name }) => name)));

async function overview(c: Context, { arbiter, evaluator, baseUrl }: ArbiterRouteParts): Promise<Response> {
  const [totals, [head = null], corrections] = await Promise.all([
    arbiter.totals(),
    arbiter.list({ before: null, limit: 1 }),
    arbiter.corrections(CORRECTIONS),
  ]);
  const { attestor } = arbiter;
  const policies = arbiter.policies();
  const entries = { totals, head, corrections };
  const document = arbiterOverview({ attestor, policies, ...entries, evaluator, baseUrl });
  return wantsHtml(c) ? page(c, renderArbiter(document, baseUrl)) : c.json(document, 200, { vary: "Accept" });
}

async function policy(c: Context, { arbiter, publicLog, baseUrl }: ArbiterRouteParts): Promise<Response> {
  const version = versionInQuery(c);
  const found = version === null ? arbiter.policies()[0].policy : arbiter.policy(version);
  if (found === null) throw new Problem("not_found", { detail: `The policy has no version ${version}.` });
  const path = version === null ? POLICY_PATH : policyPath(version);
  const pathTo = (number: number) => (arbiter.policy(number) === null ? null : policyPath(number));
  const neighbors = { before: pathTo(found.version - 1), after: pathTo(found.version + 1) };
  linkVersions(c, neighbors);
  if (!wantsHtml(c)) return c.json(found, 200, { vary: "Accept" });
  const places = await publicLog.places.of(String(found.version), ["policy"]);
  return page(c, renderPolicy(found, { baseUrl, path, ...neighbors, places }));
}

/** Returns null if the query has no version. */
function versionInQuery(c: Context): number | null {
  const text = c.req.query("version");
  if (text === undefined) return null;
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new Problem("malformed_request", {
    detail: "The query parameter version must be a version of the policy, from 1.",
  });
}

async function log(c: Context, { arbiter, baseUrl }: ArbiterRouteParts): Promise<Response> {
  const before = c.req.query("before") ?? null;
  if (before !== null && (!verdictId.safeParse(before).success || (await arbiter.get(before)) === null))
    throw new Problem("malformed_request", { detail: "The query parameter before must be the id of a verdict." });
  const found = await arbiter.list({ before, limit: LOG_PAGE + 1 });
  const verdicts = found.slice(0, LOG_PAGE).map((verdict) => logItem(verdict, baseUrl));
  const next = found.length > LOG_PAGE ? `${baseUrl}${LOG_PATH}?before=${verdicts.at(-1)?.id}` : null;
  return c.json({ verdicts, next });
}

interface Neighbors {
  readonly before: string | null;
  readonly after: string | null;
}

/** Adds the link relations of RFC 5829. */
function linkVersions(c: Context, { before, after }: Neighbors): void {
  const links = [
    ...(before === null ? [] : [`<${before}>; rel="predecessor-version"`]),
    ...(after === null ? [] : [`<${after}>; rel="successor-version"`]),
  ];
  if (links.length > 0) c.header("link", links.join(", "));
}

async function verdict(c: Context, { arbiter, publicLog, baseUrl }: ArbiterRouteParts): Promise<Response> {
  const id = c.req.param("id") ?? "";
  const [stored, places] = /^[0-9a-f]{32}$/.test(id)
    ? await Promise.all([arbiter.get(id), publicLog.places.of(id, VERDICT_ENTRIES.types)])
    : [null, []];
  if (stored === null) throw new Problem("not_found", { detail: `There is no verdict ${id.slice(0, 40)}.` });
  const { supersedes, supersededBy } = stored;
  linkVersions(c, {
    before: supersedes === null ? null : verdictPath(supersedes),
    after: supersededBy === null ? null : verdictPath(supersededBy),
  });
  if (wantsHtml(c)) return page(c, renderVerdict(stored, places, baseUrl));
  linkProof(c, places);
  // These bytes never change, so a later correction appears in a header.
  return c.body(stored.document, 200, { "content-type": "application/json", vary: "Accept" });
}
