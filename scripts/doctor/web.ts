import { randomUUID } from "node:crypto";
import { connect } from "node:tls";
import type { Config } from "../../api/platform/config/config.ts";
import { isLoopback } from "../../api/platform/config/values.ts";
import { causeOf, type Finding, fail, note, ok } from "./finding.ts";

const WITHIN_MS = 10_000;
const DAY_MS = 86_400_000;
const FEW_DAYS = 14;
const FEW_GITHUB_REQUESTS = 100;
/** A header as long as the payment of an undeployed smart wallet. */
const LONG_HEADER = "A".repeat(7_000);

const ask = (url: string, init: RequestInit = {}): Promise<Response> =>
  fetch(url, { redirect: "manual", signal: AbortSignal.timeout(WITHIN_MS), ...init });

/** Inspects GitHub's hourly request limit, for verdicts on CI runs. */
export async function inspectGithub({ github: { apiUrl, token } }: Config): Promise<readonly Finding[]> {
  const subject = token === null ? "GITHUB_API_URL" : "GITHUB_TOKEN";
  try {
    const headers = { "user-agent": "agent-payment-trust-service", ...(token && { authorization: `Bearer ${token}` }) };
    const response = await ask(`${apiUrl}/rate_limit`, { headers });
    if (response.status === 401)
      return [fail(subject, "GitHub rejects the token: create a new one without access to private repositories")];
    if (!response.ok)
      return [fail(subject, `GitHub returned status ${response.status}: check GITHUB_API_URL and outbound access`)];
    const { resources } = (await response.json()) as { resources: { core: { limit: number; remaining: number } } };
    const { limit, remaining } = resources.core;
    const quota = `${remaining} of ${limit} requests are left this hour`;
    if (token === null) return [note("GITHUB_TOKEN", `is missing: ${quota}. A token without any scope allows 5,000`)];
    return [remaining < FEW_GITHUB_REQUESTS ? fail(subject, `${quota}: use a separate token`) : ok(subject, quota)];
  } catch (error) {
    return [
      fail(
        subject,
        `GitHub cannot be reached (${causeOf(error)}): allow HTTPS from this machine to ${new URL(apiUrl).host}`,
      ),
    ];
  }
}

/** Inspects whether each witness of the log responds. Any response except a 5xx is fine, because nothing is submitted. */
export const inspectWitnesses = async ({ log }: Config): Promise<readonly Finding[]> => {
  const { witnesses } = log.witnessed;
  const subject = "LOG_WITNESSES";
  if (witnesses.length === 0) return [note(subject, "is missing: no other party vouches for the log")];
  return Promise.all(
    witnesses.map(async ({ key, submission }) => {
      const answer = await ask(`${submission}/add-checkpoint`, { method: "POST", body: "" }).catch(causeOf);
      if (typeof answer === "string") return fail(subject, `${key.name} cannot be reached (${answer}): check its URL`);
      return answer.status >= 500 || answer.status === 404
        ? fail(subject, `${key.name} returned status ${answer.status}: check its URL, or ask its operator`)
        : ok(subject, `${key.name} responds`);
    }),
  );
};

/**
 * Inspects the running service as a client: certificate, proxy, header sizes, and the status of each component.
 * @param isExpected whether it is a failure if the service is not running
 */
export async function inspectService(config: Config, isExpected = false): Promise<readonly Finding[]> {
  const { baseUrl, host, port } = config;
  const id = randomUUID();
  const health = await ask(`${baseUrl}/health`, { headers: { "x-request-id": id } }).catch(causeOf);
  if (typeof health === "string") {
    const local = `http://${host === undefined || isLoopback(host) ? "127.0.0.1" : host}:${port}/health`;
    const isRunning = await ask(local).then(
      ({ ok: isOk }) => isOk,
      () => false,
    );
    return isRunning
      ? [
          fail(
            "BASE_URL",
            `${baseUrl} cannot be reached (${health}) while the service runs: check DNS, certificate, and proxy`,
          ),
        ]
      : [
          isExpected
            ? fail("BASE_URL", `no response from ${baseUrl} (${health}): start npm run api and the proxy`)
            : note(
                "BASE_URL",
                `no response from ${baseUrl} yet (${health}): run this again once the service is started`,
              ),
        ];
  }
  if (health.status !== 200)
    return [
      fail("BASE_URL", `${baseUrl}/health returned ${health.status}: let the proxy pass every path to port ${port}`),
    ];
  const isBelieved = health.headers.get("x-request-id") === id;
  const found = await Promise.all([
    inspectCertificate(baseUrl),
    inspectTerms(baseUrl),
    inspectLongHeader(baseUrl),
    inspectStatus(baseUrl),
  ]);
  return [...proxyFindings(config, isBelieved), ...found.flat()];
}

/** The service adopts a request id only from a trusted proxy, so the id shows whether the proxy is trusted. */
function proxyFindings(
  { baseUrl, trustedProxies, rateLimitPerMinute }: Config,
  isBelieved: boolean,
): readonly Finding[] {
  const subject = "TRUSTED_PROXIES";
  if (isBelieved) return [ok(subject, "lists the proxy")];
  if (trustedProxies.length > 0)
    return [
      fail(
        subject,
        "does not list the proxy, or the proxy removes X-Request-Id: list the address that it connects from",
      ),
    ];
  if (isLoopback(new URL(baseUrl).hostname) || rateLimitPerMinute === 0) return [];
  const cure = "list its addresses, or set RATE_LIMIT_PER_MINUTE=0";
  return [fail(subject, `is missing, so all clients of a proxy share one rate limit: ${cure}`)];
}

function inspectCertificate(baseUrl: string): Promise<readonly Finding[]> {
  const { protocol, hostname, port } = new URL(baseUrl);
  if (protocol === "http:")
    return Promise.resolve(
      isLoopback(hostname) ? [] : [fail("BASE_URL", "is not encrypted: terminate TLS in the proxy, and use https://")],
    );
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, servername: hostname, port: Number(port || 443) }, () => {
      const days = Math.floor((Date.parse(socket.getPeerCertificate().valid_to) - Date.now()) / DAY_MS);
      socket.end();
      resolve([
        days < FEW_DAYS
          ? fail("TLS", `the certificate expires in ${days} days: renew it`)
          : ok("TLS", `the certificate is valid for ${days} days`),
      ]);
    });
    socket.setTimeout(WITHIN_MS, () => socket.destroy(new Error("no response")));
    socket.on("error", (error) => resolve([fail("TLS", `${hostname} has no valid certificate (${causeOf(error)})`)]));
  });
}

/** The response to an unpaid request has the terms, which are almost 4 KB of headers. */
async function inspectTerms(baseUrl: string): Promise<readonly Finding[]> {
  const answer = await ask(`${baseUrl}/test/basic`, { method: "POST" }).catch(causeOf);
  const status = typeof answer === "string" ? answer : answer.status;
  if (typeof answer !== "string" && status === 402 && answer.headers.has("payment-required"))
    return [ok("proxy", "passes the terms of payment")];
  const cure = "let it pass POST, PAYMENT-REQUIRED, and 8 KB of response headers (nginx: proxy_buffer_size 8k)";
  return [fail("proxy", `POST /test/basic returned ${status} instead of 402 with terms: ${cure}`)];
}

async function inspectLongHeader(baseUrl: string): Promise<readonly Finding[]> {
  const answer = await ask(`${baseUrl}/health`, { headers: { "payment-signature": LONG_HEADER } }).catch(causeOf);
  if (typeof answer !== "string" && answer.status === 200) return [ok("proxy", "passes long payments")];
  const what = typeof answer === "string" ? answer : answer.status;
  const cure = "allow 16 KB of request headers (nginx: large_client_header_buffers 4 16k)";
  return [fail("proxy", `a payment of ${LONG_HEADER.length} characters is rejected (${what}): ${cure}`)];
}

/** The part of `GET /status` that is used here. */
interface Status {
  readonly ok: boolean;
  readonly version: string;
  readonly indexer: { readonly ok: boolean; readonly reason: string | null };
  readonly jobs: readonly { readonly name: string; readonly ok: boolean }[];
  readonly log: {
    readonly ok: boolean;
    readonly state: string;
    readonly problem: string | null;
    readonly size: number;
    readonly witnesses: readonly {
      readonly name: string;
      readonly error: string | null;
      readonly danger: string | null;
    }[];
  } | null;
  readonly payments: { readonly oldest_unresolved_seconds: number | null };
}

async function inspectStatus(baseUrl: string): Promise<readonly Finding[]> {
  const answer = await ask(`${baseUrl}/status`, { headers: { accept: "application/json" } }).catch(causeOf);
  if (typeof answer === "string" || answer.status !== 200)
    return [
      fail(
        "status",
        `GET /status returned ${typeof answer === "string" ? answer : answer.status}: see the service's log`,
      ),
    ];
  const { ok: isOk, version, indexer, jobs, log, payments } = (await answer.json()) as Status;
  const problem = log?.problem ?? "its witnesses do not respond";
  return [
    isOk
      ? ok("status", `every component of version ${version} works`)
      : fail("status", `ok is false: see the failing components at ${baseUrl}/status`),
    ...(indexer.ok
      ? []
      : [fail("indexer", `${indexer.reason}: start npm run indexer, or wait until it has caught up`)]),
    ...jobs.filter((job) => !job.ok).map(({ name }) => fail("job", `${name} fails or hangs: see the service's log`)),
    ...(log === null || log.ok ? [] : [fail("log", `${problem}: see docs/log.md, Recovery`)]),
    ...(log?.ok ? [ok("log", `${log.state}, ${log.size} entries`)] : []),
    ...(log?.witnesses ?? []).flatMap(({ name, error, danger }) =>
      danger === null && error === null
        ? []
        : [fail("log", `witness ${name}: ${danger ?? error}; see docs/log.md, Witnesses`)],
    ),
    ...((payments.oldest_unresolved_seconds ?? 0) > 600
      ? [
          fail(
            "payments",
            `the oldest has waited ${payments.oldest_unresolved_seconds} seconds: see docs/operations.md, Payments without progress`,
          ),
        ]
      : []),
  ];
}
