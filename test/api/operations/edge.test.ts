import type { IncomingMessage } from "node:http";
import { describe, expect, test } from "vitest";
import { createPeers } from "../../../api/platform/http/peers.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { measured } from "../../support/nginx.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { broadcast, nothingCharged } from "../../support/payments/on-chain.ts";
import { type Answer, post, send, v2 } from "../../support/payments/requests.ts";
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

describe("The rate limit", () => {
  const client = { "x-forwarded-for": "203.0.113.7" };

  test("Every response has the rate limit and its remaining requests", async () => {
    for (const left of [3, 2, 1, 0]) {
      const answer = await get(behindProxy, client);
      expect([answer.status, answer.headers.get("ratelimit-policy")]).toEqual([200, `"address";q=${LIMIT};w=60`]);
      const [remaining, seconds] = leftOf(answer)?.map(Number) ?? [];
      expect(remaining).toBe(left);
      expect(seconds).toBeGreaterThan(55);
      expect(seconds).toBeLessThanOrEqual(60);
    }
  });

  test("A request beyond the limit gets a 429 with Retry-After, which browsers may read", async () => {
    const answer = await get(behindProxy, client);
    expectProblem(answer, 429, "too_many_requests");
    const [remaining, seconds] = leftOf(answer) ?? [];
    expect(remaining).toBe("0");
    expect(answer.headers.get("retry-after")).toBe(seconds);
    const exposed = answer.headers.get("access-control-expose-headers");
    for (const name of ["RateLimit", "RateLimit-Policy", "Retry-After"]) expect(exposed).toContain(name);
  });

  test("Each client has its own limit and cannot pass for another client", async () => {
    expect((await get(behindProxy, { "x-forwarded-for": "203.0.113.8" })).status).toBe(200);
    expect((await get(behindProxy, { "x-forwarded-for": "198.51.100.1, 203.0.113.7" })).status).toBe(429);
  });

  test("Preflights do not count toward the limit", async () => {
    const preflight = () => fetch(`${behindProxy.url}/score`, { method: "OPTIONS", headers: client });
    expect((await preflight()).status).toBe(204);
  });

  test("All processes of one database share the limit", async () => {
    const { database } = behindProxy;
    const shared = { ...config, trustedProxies: ["127.0.0.1", "::1"] };
    const [one, other] = await Promise.all(
      [0, 1].map(() => forFile(startService({ chain, database, jobs: false, config: shared }))),
    );
    const sender = { "x-forwarded-for": "203.0.113.99" };
    const ask = (service: TestService | undefined) => get(service as TestService, sender);
    for (let request = 0; request < LIMIT; request++) expect((await ask(one)).status).toBe(200);
    const expectCounted = (used: number) =>
      expect
        .poll(() =>
          withClient(database.ownerUrl, async (client) => {
            const { rows } = await client.query("SELECT used FROM request_count WHERE client = '203.0.113.99'");
            return rows;
          }),
        )
        .toEqual([{ used }]);
    await expectCounted(LIMIT);
    // The other process has not counted the client yet and learns the shared count from its first request.
    let used = LIMIT;
    for (; (await ask(other)).status === 200; used++) await expectCounted(used + 1);
    expect((await ask(other)).status).toBe(429);
    expect(used).toBeGreaterThan(LIMIT);
    expect(used).toBeLessThanOrEqual(LIMIT + 3);
  });

  test("Responses without a rate limit have no rate limit headers", async () => {
    const { headers } = await get(open);
    expect([headers.get("ratelimit"), headers.get("ratelimit-policy")]).toEqual([null, null]);
  });
});

describe("Cross-origin pages", () => {
  const preflight = (path: string, headers: Record<string, string>) =>
    fetch(open.url + path, { method: "OPTIONS", headers: { origin: "https://elsewhere.example", ...headers } });

  test.each(["/test/basic", "/mcp", "/purchases", "/nowhere", "//inspect/"])(
    "A preflight for %s allows any method, the requested headers, and private network access",
    async (path) => {
      for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
        const { status, headers } = await preflight(path, {
          "access-control-request-method": method,
          "access-control-request-headers": "access-control-expose-headers,mcp-protocol-version,x-custom",
          "access-control-request-private-network": "true",
        });
        expect([status, headers.get("access-control-allow-origin")]).toEqual([204, "*"]);
        expect(headers.get("access-control-allow-methods")).toContain(method);
        expect(headers.get("access-control-allow-headers")).toMatch(/expose-headers.*mcp-protocol-version.*x-custom/);
        expect(headers.get("access-control-allow-private-network")).toBe("true");
      }
    },
  );

  test("A cross-origin page can read every response, including a 402, a redirect, and each error", async () => {
    const large = { "x-large": "x".repeat(100 * 1024) };
    const answers = await Promise.all([
      fetch(`${open.url}/test/basic`, { method: "POST" }),
      fetch(`${open.url}//inspect`, { redirect: "manual" }),
      fetch(`${open.url}/nowhere`),
      fetch(`${open.url}/inspect`, { method: "DELETE" }),
      fetch(`${open.url}/score`, { method: "POST", body: "x".repeat(80 * 1024) }),
      fetch(`${open.url}/inspect`, { headers: large }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([402, 308, 404, 405, 413, 431]);
    for (const { headers } of answers) {
      expect(headers.get("access-control-allow-origin")).toBe("*");
      const exposed = headers.get("access-control-expose-headers");
      for (const name of [
        "PAYMENT-REQUIRED",
        "PAYMENT-RESPONSE",
        "X-PAYMENT-RESPONSE",
        "X-Idempotent-Replay",
        "Retry-After",
      ])
        expect(exposed).toContain(name);
    }
  });
});

describe("The request id", () => {
  const loggedIds = ({ logged }: TestService) => logged.map((line) => JSON.parse(line).request_id);
  const own = "edge-0123456789.abc_DEF";

  test("A well-formed id from a trusted proxy is used in the response, the problem, and the log", async () => {
    const headers = { "x-forwarded-for": "203.0.113.20", "x-request-id": own };
    const answer = await get(behindProxy, headers, "/cert/0123456789abcdef");
    expectProblem(answer, 404, "not_found");
    expect([answer.headers.get("x-request-id"), answer.body.request_id]).toEqual([own, own]);
    expect(loggedIds(behindProxy)).toContain(own);
  });

  test("A request gets a new id if the sender's is not accepted", async () => {
    const answer = await get(open, { "x-request-id": own });
    const id = answer.headers.get("x-request-id");
    expect(id).toMatch(UUID);
    expect(loggedIds(open)).toContain(id);
  });

  test("The id of a request with an oversized body is logged", async () => {
    const answer = await send(`${open.url}/score`, { method: "POST", body: "x".repeat(80 * 1024) });
    expectProblem(answer, 413, "body_too_large");
    expect(loggedIds(open)).toContain(answer.headers.get("x-request-id"));
  });
});

test("A call to an /mcp tool counts toward its sender's budget", async () => {
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

describe("Paths with extra slashes", () => {
  test.each([
    ["/inspect/", "/inspect"],
    ["//inspect", "/inspect"],
    ["/board//?a=1//", "/board?a=1//"],
    ["//evil.example/", "/evil.example"],
    ["/\\\\evil.example/", "/evil.example"],
    ["//", "/"],
    ["/%0d%0ax:%20y/", "/%0d%0ax:%20y"],
  ])("%s is redirected to %s", async (path, plain) => {
    const { status, headers } = await measured(open.url + path);
    expect([status, headers.get("location")]).toEqual([308, plain]);
  });

  test("A POST is redirected with 308, which keeps its method and body", async () => {
    const { status, headers } = await measured(`${open.url}/arbiter//verify/`, { method: "POST", body: "{}" });
    expect([status, headers.get("location")]).toEqual([308, "/arbiter/verify"]);
  });
});

describe("The Accept header of /mcp", () => {
  const list = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };
  const ask = (accept: string | undefined) =>
    send(`${open.url}/mcp`, {
      method: "POST",
      headers: { "content-type": "application/json", ...(accept === undefined ? {} : { accept }) },
      body: JSON.stringify(list),
    });

  test.each(["application/json", "*/*", undefined, "application/json, text/event-stream", "application/*"])(
    "A request with Accept: %s gets JSON",
    async (accept) => {
      const { status, headers, body } = await ask(accept);
      expect([status, headers.get("content-type")]).toEqual([200, "application/json"]);
      expect(body).toMatchObject({ id: 1, result: { tools: expect.any(Array) } });
    },
  );

  test("A client that does not accept JSON gets 406", async () =>
    expect((await ask("text/html, application/json;q=0")).status).toBe(406));
});

describe("Wallet parameters", () => {
  const wallet = "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed";
  const mistyped = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD";

  test("A wallet may be given as CAIP-10 or did:pkh on the service's network", async () => {
    for (const prefix of ["eip155:8453:", "did:pkh:eip155:8453:"]) {
      expect((await send(`${open.url}/verify?wallet=${prefix}${wallet}`)).body).toMatchObject({ wallet });
      expect((await send(`${open.url}/credential/${prefix}${wallet}`)).body).toMatchObject({
        credentialSubject: { id: `did:pkh:eip155:8453:${wallet}` },
      });
    }
  });

  test("A wallet with a wrong checksum is refused on every route, and nothing is charged", async () => {
    const path = "/settlement?network=base&nonce=0x&from=";
    for (const place of ["/verify?wallet=", "/credential/", "/payee/", "/test/seller?wallet=", path]) {
      const answer = await send(`${open.url}${place}${mistyped}`);
      expectProblem(answer, 400, "malformed_request");
      expect(answer.body.detail).toMatch(/not its checksum/);
    }
    const payer = await newPayer(chain);
    const headers = v2(await signPayment(payer));
    const parties = { payer: wallet, payee: mistyped };
    const conditions = { payload_text: "x", expected_sha256: "0".repeat(64) };
    const claim = JSON.stringify({ category: "payload-hash", conditions, parties });
    const refused = await post(`${open.url}/arbiter/verify`, headers, claim);
    expectProblem(refused, 400, "malformed_request");
    expect(JSON.stringify(refused.body.errors)).toMatch(/not its checksum/);
    await nothingCharged(chain, payer);
  });
});

describe("Peers", () => {
  const TRUSTED = ["10.0.0.0/8", "127.0.0.1", "2001:db8:ffff::/48"];
  const from = (remoteAddress: string, headers: IncomingMessage["headers"] = {}) =>
    ({ socket: { remoteAddress }, headers }) as IncomingMessage;
  const via = (remoteAddress: string, forwarded: string) => from(remoteAddress, { "x-forwarded-for": forwarded });
  const by = (forwarded: string, listed?: string) =>
    from("10.1.2.3", { forwarded, ...(listed === undefined ? {} : { "x-forwarded-for": listed }) });

  describe("The client of a request", () => {
    test.each([
      ["the socket's address", from("203.0.113.7"), "203.0.113.7"],
      ["an IPv4 address over an IPv6 socket", from("::ffff:203.0.113.7"), "203.0.113.7"],
      ["the /64 of an IPv6 address", from("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64"],
      ["the /64 of a shortened IPv6 address", from("2001:db8::6"), "2001:db8:0:0::/64"],
      ["the /64 of an IPv6 address with explicit zeros", from("2001:0db8:0::0006"), "2001:db8:0:0::/64"],
      ["the address from a trusted proxy", via("10.1.2.3", "203.0.113.7"), "203.0.113.7"],
      ["the last untrusted address before two proxies", via("10.1.2.3", "203.0.113.7, 10.9.9.9"), "203.0.113.7"],
      [
        "the forwarded sender and not an address that it added",
        via("10.1.2.3", "198.51.100.1, 203.0.113.7"),
        "203.0.113.7",
      ],
      ["the proxy if it forwards no address", from("10.1.2.3"), "10.1.2.3"],
      ["the last valid address after an invalid one", via("10.1.2.3", "nonsense, 10.9.9.9"), "10.9.9.9"],
      ["an untrusted sender, whatever it forwards", via("203.0.113.7", "198.51.100.1"), "203.0.113.7"],
      ["an IPv6 client behind an IPv6 proxy", via("2001:db8:ffff::1", "2001:db8:5:6::1"), "2001:db8:5:6::/64"],
      ["the client behind two proxies with ports", via("10.1.2.3", "203.0.113.7:49152, 10.9.9.9:80"), "203.0.113.7"],
      ["an IPv6 address in brackets with its port", via("10.1.2.3", "[2001:db8:5:6::1]:443"), "2001:db8:5:6::/64"],
      ["an IPv4-mapped IPv6 address", via("10.1.2.3", "[::ffff:203.0.113.7]:443"), "203.0.113.7"],
      ["the proxy if the port is invalid", via("10.1.2.3", "203.0.113.7:http"), "10.1.2.3"],
      ["the proxy if the brackets contain no IPv6 address", via("10.1.2.3", "[203.0.113.7.9]"), "10.1.2.3"],
      ["the address in Forwarded", by("for=203.0.113.7"), "203.0.113.7"],
      [
        "the address in Forwarded among other parameters",
        by("proto=https; For=203.0.113.7 ;by=10.1.2.3"),
        "203.0.113.7",
      ],
      ["a quoted IPv6 address with a port", by('for="[2001:db8:5:6::1]:4711"'), "2001:db8:5:6::/64"],
      ["a quoted IPv4 address with a hidden port", by('for="203.0.113.7:_x1"'), "203.0.113.7"],
      ["the address after an unclosed quote", by('for=", for=203.0.113.7'), "203.0.113.7"],
      ["the proxy if Forwarded hides the client", by("for=_hidden, for=unknown"), "10.1.2.3"],
      ["the proxy if Forwarded has no address", by("proto=https"), "10.1.2.3"],
      ["the address in both headers", by("for=203.0.113.7", "203.0.113.7:80"), "203.0.113.7"],
      ["the proxy if the headers differ", by("for=198.51.100.1", "203.0.113.7"), "10.1.2.3"],
      [
        "an untrusted sender, whatever its Forwarded header contains",
        from("203.0.113.7", { forwarded: "for=198.51.100.1" }),
        "203.0.113.7",
      ],
    ])("The client is %s", (_, incoming, client) => expect(createPeers(TRUSTED).clientOf(incoming)).toBe(client));

    test("The client is the socket's address if no proxy is trusted", () =>
      expect(createPeers([]).clientOf(via("127.0.0.1", "203.0.113.7"))).toBe("127.0.0.1"));
  });

  describe("The request id", () => {
    const id = (value: string, address = "10.1.2.3", trusted: readonly string[] = TRUSTED) =>
      createPeers(trusted).requestIdOf(from(address, { "x-request-id": value }));

    test.each(["b7a1c2d3", "0f8fad5b-d9cb-469f-a165-70867728950e", "Root_1.2-3", "x".repeat(128)])(
      "A trusted proxy's id %s is accepted",
      (value) => expect(id(value)).toBe(value),
    );

    test.each(["", "short", "x".repeat(129), "has a space in it", 'quote"quote"', "line\nbreak.", "ünïcödé-id"])(
      "A malformed id %j is ignored",
      (value) => expect(id(value)).toBeNull(),
    );

    test("An id from an untrusted sender is ignored", () => {
      expect(id("b7a1c2d3", "203.0.113.7")).toBeNull();
      expect(id("b7a1c2d3", "127.0.0.1", [])).toBeNull();
    });
  });
});
