import { describe, expect, test } from "vitest";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { broadcast } from "../../support/payments/on-chain.ts";
import { type Answer, send } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { startService, type TestService } from "../../support/service/service.ts";

const LIMIT = 4;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const chain = await forFile(startTestChain());
const config = { rateLimitPerMinute: LIMIT };
const [behindProxy, open] = await Promise.all([
  forFile(startService({ chain, jobs: false, config: { ...config, trustedProxies: ["127.0.0.1", "::1"] } })),
  forFile(startService({ chain, jobs: false })),
]);

const get = (service: TestService, headers: Record<string, string> = {}, path = "/inspect"): Promise<Answer> =>
  send(`${service.url}${path}`, { headers });
const leftOf = ({ headers }: Answer) => /^"address";r=(\d+);t=(\d+)$/.exec(headers.get("ratelimit") ?? "")?.slice(1);

describe("the rate limit", () => {
  const client = { "x-forwarded-for": "203.0.113.7" };

  test("is stated with every answer, and what is left of it", async () => {
    for (const left of [3, 2, 1, 0]) {
      const answer = await get(behindProxy, client);
      expect([answer.status, answer.headers.get("ratelimit-policy")]).toEqual([200, `"address";q=${LIMIT};w=60`]);
      const [remaining, seconds] = leftOf(answer)?.map(Number) ?? [];
      expect(remaining).toBe(left);
      expect(seconds).toBeGreaterThan(55);
      expect(seconds).toBeLessThanOrEqual(60);
    }
  });

  test("once used up is a 429 that says when to retry, and browsers may read it", async () => {
    const answer = await get(behindProxy, client);
    expectProblem(answer, 429, "too_many_requests");
    const [remaining, seconds] = leftOf(answer) ?? [];
    expect(remaining).toBe("0");
    expect(answer.headers.get("retry-after")).toBe(seconds);
    const exposed = answer.headers.get("access-control-expose-headers");
    for (const name of ["RateLimit", "RateLimit-Policy", "Retry-After"]) expect(exposed).toContain(name);
  });

  test("is each client's own, and a client cannot pass for another", async () => {
    expect((await get(behindProxy, { "x-forwarded-for": "203.0.113.8" })).status).toBe(200);
    expect((await get(behindProxy, { "x-forwarded-for": "198.51.100.1, 203.0.113.7" })).status).toBe(429);
  });

  test("is shared by a whole IPv6 /64", async () => {
    const of = (host: string) => get(behindProxy, { "x-forwarded-for": `2001:db8:7:7::${host}` });
    for (const host of ["1", "2", "3", "4"]) expect((await of(host)).status).toBe(200);
    expect((await of("5")).status).toBe(429);
  });

  test("does not count preflights, which browsers send by themselves", async () => {
    const preflight = () => fetch(`${behindProxy.url}/score`, { method: "OPTIONS", headers: client });
    expect((await preflight()).status).toBe(204);
  });

  test("is not mentioned where there is none", async () => {
    const { headers } = await get(open);
    expect([headers.get("ratelimit"), headers.get("ratelimit-policy")]).toEqual([null, null]);
  });
});

describe("the id of a request", () => {
  const loggedIds = ({ logged }: TestService) => logged.map((line) => JSON.parse(line).request_id);
  const own = "edge-0123456789.abc_DEF";

  test("is the proxy's where it is well-formed: in the answer, the problem and the log", async () => {
    const headers = { "x-forwarded-for": "203.0.113.20", "x-request-id": own };
    const answer = await get(behindProxy, headers, "/cert/0123456789abcdef");
    expectProblem(answer, 404, "not_found");
    expect([answer.headers.get("x-request-id"), answer.body.request_id]).toEqual([own, own]);
    expect(loggedIds(behindProxy)).toContain(own);
  });

  test.each([
    ["is made here where the proxy's is not well-formed", () => behindProxy, "a b"],
    ["is made here where no proxy is trusted", () => open, own],
  ])("%s", async (_, service, given) => {
    const answer = await get(service(), { "x-forwarded-for": "203.0.113.21", "x-request-id": given });
    const id = answer.headers.get("x-request-id");
    expect(id).toMatch(UUID);
    expect(loggedIds(service())).toContain(id);
  });

  test("is logged for a body that is refused for its length, too", async () => {
    const answer = await send(`${open.url}/score`, { method: "POST", body: "x".repeat(80 * 1024) });
    expectProblem(answer, 413, "body_too_large");
    expect(loggedIds(open)).toContain(answer.headers.get("x-request-id"));
  });
});

test("a question to the tools of /mcp is counted as its sender's, not as everybody's", async () => {
  const signed = await signPayment(await newPayer(chain), { to: "0x00000000000000000000000000000000000a11ce" });
  await broadcast(chain, signed);
  const { from, nonce } = signed.authorization;
  const answer = await send(`${behindProxy.url}/mcp`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "x-forwarded-for": "203.0.113.50",
    },
    body: JSON.stringify({
      ...{ jsonrpc: "2.0", id: 1, method: "tools/call" },
      params: { name: "settlement_status", arguments: { network: "base", from, nonce } },
    }),
  });
  expect([answer.status, answer.text]).toEqual([200, expect.stringContaining("settled")]);
  const { rows } = await withClient(behindProxy.database.ownerUrl, (client) =>
    client.query("SELECT client FROM lookup_budget WHERE client LIKE 'settlement _%' ORDER BY client"),
  );
  expect(rows.map(({ client }) => client)).toEqual(["settlement 203.0.113.50", "settlement network 203.0.113.0/24"]);
});
