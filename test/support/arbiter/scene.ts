import type { RequestListener } from "node:http";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import type { Pool } from "pg";
import type { LocalAccount } from "viem";
import { recordParts as partsOf } from "../../../api/arbiter/index.ts";
import type { Tiers } from "../../../api/arbiter/parties.ts";
import type { Verdict } from "../../../api/arbiter/policy/policy.ts";
import type { VerdictParts } from "../../../api/arbiter/reach-verdict.ts";
import { didWeb } from "../../../api/platform/signing/did.ts";
import { createSigner } from "../../../api/platform/signing/document.ts";
import { signingKey } from "../../../api/platform/signing/keys.ts";
import { startTestChain, type TestChain } from "../chain/chain.ts";
import { serveHttp } from "../http-server.ts";
import { type Answer, post, send } from "../payments/requests.ts";
import { startService, type TestService, type TestServicePlan } from "../service/service.ts";
import { sha256 } from "./rows.ts";

/** A client's submission, before it is serialized. */
export interface Claim {
  readonly category: string;
  readonly conditions: Readonly<Record<string, unknown>>;
  readonly deal_ref?: string;
  readonly parties?: Readonly<Record<string, string>>;
}

/** A claim, and the verdict that the scene's servers lead to. */
export interface ClaimOf {
  readonly category: string;
  readonly verdict: Verdict;
  readonly conditions: Readonly<Record<string, unknown>>;
}

/** A check run in the format of GitHub's API. */
export type Run = Readonly<Record<string, unknown>>;

/** The scene where verdicts are bought: a chain, the service, and local stand-ins for a merchant and GitHub. */
export interface ArbiterScene {
  readonly chain: TestChain;
  readonly service: TestService;
  /** The origin of the merchant's server; unknown paths return 404. */
  readonly shop: string;
  readonly pages: Map<string, RequestListener>;
  /** Check-runs of `COMMIT` by repository. */
  readonly runs: Map<string, readonly Run[]>;
  /** One claim for every category and each of its possible verdicts. */
  readonly claims: readonly ClaimOf[];
  readonly stop: () => Promise<void>;
}

export const COMMIT = "c0".repeat(20);
export const DELIVERABLE = "The report, whole and as agreed: grüße aus dem Süden.\n";

export async function startArbiterScene(plan: Partial<TestServicePlan> = {}): Promise<ArbiterScene> {
  const pages = new Map<string, RequestListener>([
    ["/report", (_request, response) => response.writeHead(200, { "content-type": "text/plain" }).end(DELIVERABLE)],
    ["/busy", (_request, response) => response.writeHead(503).end("later")],
  ]);
  const runs = new Map<string, readonly Run[]>([
    ["octo/good", [checkRun(1), checkRun(2, { conclusion: "skipped" })]],
    ["octo/bad", [checkRun(1), checkRun(2, { conclusion: "failure" })]],
    ["octo/busy", [checkRun(1), checkRun(2, { status: "in_progress", conclusion: null })]],
  ]);
  const [shop, github, chain] = await Promise.all([
    serveHttp(shopOf(pages)),
    serveHttp(githubOf(runs)),
    plan.chain ?? startTestChain(),
  ]);
  const config = {
    ...plan.config,
    arbiterAllowedOrigins: [shop.url],
    github: { apiUrl: github.url, token: null },
  };
  const service = await startService({ ...plan, chain, config });
  return {
    chain,
    service,
    shop: shop.url,
    pages,
    runs,
    claims: claimsOn(shop.url),
    async stop() {
      await service.stop();
      await chain.stop();
      shop.stop();
      github.stop();
    },
  };
}

/** A successful run, with these fields overridden. */
export const checkRun = (id: number, fields: Run = {}): Run => ({
  id,
  name: `check ${id}`,
  head_sha: COMMIT,
  status: "completed",
  conclusion: "success",
  app: { id: 15_368, slug: "github-actions" },
  check_suite: { id: 7 },
  ...fields,
});

const claimsOn = (shop: string): readonly ClaimOf[] => {
  const delivered = (path: string) => ({
    url: `${shop}${path}`,
    expect_status: 200,
    expect_sha256: sha256(DELIVERABLE),
    min_bytes: "20",
    expect_contains: "grüße",
  });
  const payload = (text: string) => ({ payload_text: text, expected_sha256: sha256(DELIVERABLE) });
  const commit = (repo: string) => ({ repo, commit_sha: COMMIT });
  return [
    { category: "http-delivery", verdict: "release", conditions: delivered("/report") },
    { category: "http-delivery", verdict: "refund", conditions: delivered("/gone") },
    { category: "http-delivery", verdict: "escalate", conditions: delivered("/busy") },
    { category: "payload-hash", verdict: "release", conditions: payload(DELIVERABLE) },
    { category: "payload-hash", verdict: "refund", conditions: payload("another report") },
    { category: "ci-status", verdict: "release", conditions: commit("octo/good") },
    { category: "ci-status", verdict: "refund", conditions: commit("octo/bad") },
    { category: "ci-status", verdict: "escalate", conditions: commit("octo/busy") },
  ];
};

const shopOf =
  (pages: ReadonlyMap<string, RequestListener>): RequestListener =>
  (request, response) => {
    const page = pages.get(new URL(request.url ?? "/", "http://shop").pathname);
    if (page === undefined) response.writeHead(404).end("not found");
    else page(request, response);
  };

/**
 * https://docs.github.com/en/rest/checks/runs#list-check-runs-for-a-git-reference, for one commit and with its pages,
 * with the workflow run behind them and without a commit status.
 */
const githubOf =
  (runs: ReadonlyMap<string, readonly Run[]>): RequestListener =>
  (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://github");
    const [, repo = "", list = ""] = /^\/repos\/([^/]+\/[^/]+)\/(.+)$/.exec(pathname) ?? [];
    const found = runs.get(repo);
    const [page, size] = [Number(searchParams.get("page")), Number(searchParams.get("per_page"))];
    const repository = { id: 1, full_name: repo };
    const workflowRun = { id: 70, check_suite_id: 7, workflow_id: 3, head_branch: "main", repository };
    const lists: Record<string, object | undefined> = {
      [`commits/${COMMIT}/check-runs`]: found && {
        total_count: found.length,
        check_runs: found.slice((page - 1) * size, page * size),
      },
      "actions/runs": { total_count: 1, workflow_runs: [{ ...workflowRun, head_repository: repository }] },
      [`commits/${COMMIT}/status`]: { state: "pending", total_count: 0, statuses: [] },
    };
    const body = found && lists[list];
    response.writeHead(body ? 200 : 404, { "content-type": "application/json" }).end(JSON.stringify(body ?? {}));
  };

const JSON_TYPE = { "content-type": "application/json" };

const verifyUrl = ({ url }: Pick<TestService, "url">): string => `${url}/arbiter/verify`;

/** Submits a claim with the given payment headers, or none. Text is sent unchanged. */
export const handIn = (
  service: Pick<TestService, "url">,
  claim: object | string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> =>
  post(verifyUrl(service), { ...JSON_TYPE, ...headers }, typeof claim === "string" ? claim : JSON.stringify(claim));

/** Buys a verdict with the stock client of `@x402/fetch`. `headers` carry its payment, for another request. */
export async function buyVerdict(
  service: Pick<TestService, "url">,
  payer: LocalAccount,
  claim: Claim,
): Promise<{ readonly answer: Answer; readonly headers: Readonly<Record<string, string>> }> {
  let paid = "";
  const watched: typeof fetch = (input, init) => {
    const request = new Request(input, init);
    paid = request.headers.get("payment-signature") ?? paid;
    return fetch(request);
  };
  const client = new x402Client().register("eip155:*", new ExactEvmScheme(payer));
  const init = { method: "POST", headers: JSON_TYPE, body: JSON.stringify(claim) };
  const response = await wrapFetchWithPayment(watched, client)(verifyUrl(service), init);
  const { status, headers } = response;
  const text = await response.text();
  const answer = { status, headers, text, body: JSON.parse(text) as Answer["body"] };
  return { answer, headers: { "payment-signature": paid } };
}

/** A record as JSON. */
export const recordOf = (url: string): Promise<Answer> => send(url, { headers: { accept: "application/json" } });

/**
 * The parts with which the service's arbiter records verdicts, on the test's own pool. Scores are unavailable by
 * default.
 */
export async function recordParts(
  { config }: Pick<TestService, "config">,
  pool: Pool,
  { now = () => new Date(), tiers = NO_SCORES }: Partial<Pick<VerdictParts, "now" | "tiers">> = {},
): Promise<VerdictParts> {
  const signer = createSigner(await signingKey(config.signingKey), didWeb(config.baseUrl));
  const wait = async () => undefined;
  return partsOf({ pool, meter: null, now, keys: { signer } }, config, { tiers, wait });
}

const NO_SCORES: Tiers = {
  prepare: async () => null,
  ready: async () => false,
  of: () => Promise.reject(new Error("no scores")),
};
