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

  test("is shared by all processes of one database", async () => {
    const { database } = behindProxy;
    const shared = { ...config, trustedProxies: ["127.0.0.1", "::1"] };
    const [one, other] = await Promise.all(
      [0, 1].map(() => forFile(startService({ chain, database, jobs: false, config: shared }))),
    );
    const sender = { "x-forwarded-for": "203.0.113.99" };
    const ask = (service: TestService | undefined) => get(service as TestService, sender);
    for (let request = 0; request < LIMIT; request++) expect((await ask(one)).status).toBe(200);
    const counted = () =>
      withClient(database.ownerUrl, (client) =>
        client.query("SELECT used FROM request_count WHERE client = '203.0.113.99'"),
      );
    await expect.poll(async () => (await counted()).rows).toEqual([{ used: LIMIT }]);
    // It has counted nothing of this client yet: its first request is how it finds out.
    expect((await ask(other)).status).toBe(200);
    await expect.poll(async () => (await ask(other)).status, { interval: 50 }).toBe(429);
    expect((await counted()).rows[0]?.used).toBeLessThanOrEqual(LIMIT + 3);
  });

  test("is not mentioned where there is none", async () => {
    const { headers } = await get(open);
    expect([headers.get("ratelimit"), headers.get("ratelimit-policy")]).toEqual([null, null]);
  });
});

describe("a page of another origin", () => {
  const preflight = (path: string, headers: Record<string, string>) =>
    fetch(open.url + path, { method: "OPTIONS", headers: { origin: "https://elsewhere.example", ...headers } });

  test.each(["/test/basic", "/mcp", "/purchases", "/nowhere", "//inspect/"])(
    "may send what it asks for to %s, with any method and from a public network to a private one",
    async (path) => {
      for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
        const { status, headers } = await preflight(path, {
          "access-control-request-method": method,
          "access-control-request-headers": "access-control-expose-headers,mcp-protocol-version,x-of-its-own",
          "access-control-request-private-network": "true",
        });
        expect([status, headers.get("access-control-allow-origin")]).toEqual([204, "*"]);
        expect(headers.get("access-control-allow-methods")).toContain(method);
        expect(headers.get("access-control-allow-headers")).toMatch(
          /expose-headers.*mcp-protocol-version.*x-of-its-own/,
        );
        expect(headers.get("access-control-allow-private-network")).toBe("true");
      }
    },
  );

  test("reads every answer: a redirect, an unknown path, another method, a body and headers that are too large", async () => {
    const large = { "x-large": "x".repeat(100 * 1024) };
    const answers = await Promise.all([
      fetch(`${open.url}//inspect`, { redirect: "manual" }),
      fetch(`${open.url}/nowhere`),
      fetch(`${open.url}/inspect`, { method: "DELETE" }),
      fetch(`${open.url}/score`, { method: "POST", body: "x".repeat(80 * 1024) }),
      fetch(`${open.url}/inspect`, { headers: large }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([308, 404, 405, 413, 431]);
    for (const { headers } of answers) {
      expect(headers.get("access-control-allow-origin")).toBe("*");
      expect(headers.get("access-control-expose-headers")).toMatch(/PAYMENT-REQUIRED.*Retry-After/);
    }
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

describe("a path with a slash too many", () => {
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

  test("keeps the method and the body", async () => {
    const { status, headers } = await measured(`${open.url}/arbiter//verify/`, { method: "POST", body: "{}" });
    expect([status, headers.get("location")]).toEqual([308, "/arbiter/verify"]);
  });
});

describe("the tools of /mcp answer JSON", () => {
  const list = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };
  const ask = (accept: string | undefined) =>
    send(`${open.url}/mcp`, {
      method: "POST",
      headers: { "content-type": "application/json", ...(accept === undefined ? {} : { accept }) },
      body: JSON.stringify(list),
    });

  test.each(["application/json", "*/*", undefined, "application/json, text/event-stream", "application/*"])(
    "to Accept: %s",
    async (accept) => {
      const { status, headers, body } = await ask(accept);
      expect([status, headers.get("content-type")]).toEqual([200, "application/json"]);
      expect(body).toMatchObject({ id: 1, result: { tools: expect.any(Array) } });
    },
  );

  test("and refuse a client that takes no JSON", async () =>
    expect((await ask("text/html, application/json;q=0")).status).toBe(406));
});

describe("a wallet", () => {
  const wallet = "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed";
  const mistyped = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD";

  test("may be CAIP-10 or did:pkh of our network", async () => {
    for (const prefix of ["eip155:8453:", "did:pkh:eip155:8453:"]) {
      expect((await send(`${open.url}/verify?wallet=${prefix}${wallet}`)).body).toMatchObject({ wallet });
      expect((await send(`${open.url}/credential/${prefix}${wallet}`)).body).toMatchObject({
        credentialSubject: { id: `did:pkh:eip155:8453:${wallet}` },
      });
    }
  });

  test("whose capitals are not its checksum is refused wherever one is named, and nothing is charged", async () => {
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

describe("peers", () => {
  const TRUSTED = ["10.0.0.0/8", "127.0.0.1", "2001:db8:ffff::/48"];
  const from = (remoteAddress: string, headers: IncomingMessage["headers"] = {}) =>
    ({ socket: { remoteAddress }, headers }) as IncomingMessage;
  const via = (remoteAddress: string, forwarded: string) => from(remoteAddress, { "x-forwarded-for": forwarded });
  const by = (forwarded: string, listed?: string) =>
    from("10.1.2.3", { forwarded, ...(listed === undefined ? {} : { "x-forwarded-for": listed }) });

  describe("the client that a request is counted against", () => {
    test.each([
      ["the socket's address", from("203.0.113.7"), "203.0.113.7"],
      ["an IPv4 address over an IPv6 socket", from("::ffff:203.0.113.7"), "203.0.113.7"],
      ["of an IPv6 address its /64", from("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64"],
      ["of a shortened one too", from("2001:db8::6"), "2001:db8:0:0::/64"],
      ["however its zeros are written", from("2001:0db8:0::0006"), "2001:db8:0:0::/64"],
      ["the one that a trusted proxy names", via("10.1.2.3", "203.0.113.7"), "203.0.113.7"],
      ["the one that it names over an IPv6 socket", via("::ffff:127.0.0.1", "203.0.113.7"), "203.0.113.7"],
      ["the last stranger on the way through two of them", via("10.1.2.3", "203.0.113.7, 10.9.9.9"), "203.0.113.7"],
      ["not what the client says of itself", via("10.1.2.3", "198.51.100.1, 203.0.113.7"), "203.0.113.7"],
      ["the proxy when it names nobody", from("10.1.2.3"), "10.1.2.3"],
      ["the last known one before nonsense", via("10.1.2.3", "nonsense, 10.9.9.9"), "10.9.9.9"],
      ["a stranger, whatever it says", via("203.0.113.7", "198.51.100.1"), "203.0.113.7"],
      ["an IPv6 stranger behind an IPv6 proxy", via("2001:db8:ffff::1", "2001:db8:5:6::1"), "2001:db8:5:6::/64"],
      ["an address with its port", via("10.1.2.3", "203.0.113.7:49152"), "203.0.113.7"],
      ["through two proxies with ports", via("10.1.2.3", "203.0.113.7:49152, 10.9.9.9:80"), "203.0.113.7"],
      ["an IPv6 address in brackets", via("10.1.2.3", "[2001:db8:5:6::1]"), "2001:db8:5:6::/64"],
      ["an IPv6 address in brackets with its port", via("10.1.2.3", "[2001:db8:5:6::1]:443"), "2001:db8:5:6::/64"],
      ["an IPv4 address as IPv6 writes it", via("10.1.2.3", "[::ffff:203.0.113.7]:443"), "203.0.113.7"],
      ["the proxy when the port is none", via("10.1.2.3", "203.0.113.7:http"), "10.1.2.3"],
      ["the proxy when the brackets hold no address", via("10.1.2.3", "[203.0.113.7.9]"), "10.1.2.3"],
      ["what Forwarded names", by("for=203.0.113.7"), "203.0.113.7"],
      ["what Forwarded names among others", by("proto=https; For=203.0.113.7 ;by=10.1.2.3"), "203.0.113.7"],
      ["a quoted IPv6 address with a port", by('for="[2001:db8:5:6::1]:4711"'), "2001:db8:5:6::/64"],
      ["a quoted IPv4 address with a hidden port", by('for="203.0.113.7:_x1"'), "203.0.113.7"],
      ["the last stranger in Forwarded", by('for=198.51.100.1, for="203.0.113.7:1", for=10.9.9.9'), "203.0.113.7"],
      ["not hidden by an open quote", by('for=", for=203.0.113.7'), "203.0.113.7"],
      ["the proxy when Forwarded hides the client", by("for=_hidden, for=unknown"), "10.1.2.3"],
      ["the proxy when Forwarded names nobody", by("proto=https"), "10.1.2.3"],
      ["what both headers name", by("for=203.0.113.7", "203.0.113.7:80"), "203.0.113.7"],
      ["the proxy when the headers differ", by("for=198.51.100.1", "203.0.113.7"), "10.1.2.3"],
      ["a stranger, whatever it forwards", from("203.0.113.7", { forwarded: "for=198.51.100.1" }), "203.0.113.7"],
    ])("is %s", (_, incoming, client) => expect(createPeers(TRUSTED).clientOf(incoming)).toBe(client));

    test("is the socket's address where no proxy is trusted", () =>
      expect(createPeers([]).clientOf(via("127.0.0.1", "203.0.113.7"))).toBe("127.0.0.1"));
  });

  describe("the id of a request", () => {
    const id = (value: string, address = "10.1.2.3", trusted: readonly string[] = TRUSTED) =>
      createPeers(trusted).requestIdOf(from(address, { "x-request-id": value }));

    test.each(["b7a1c2d3", "0f8fad5b-d9cb-469f-a165-70867728950e", "Root_1.2-3", "x".repeat(128)])(
      "is taken from a trusted proxy: %s",
      (value) => expect(id(value)).toBe(value),
    );

    test.each(["", "short", "x".repeat(129), "has a space in it", 'quote"quote"', "line\nbreak.", "ünïcödé-id"])(
      "is not taken when it is malformed: %j",
      (value) => expect(id(value)).toBeNull(),
    );

    test("is not taken from anybody else", () => {
      expect(id("b7a1c2d3", "203.0.113.7")).toBeNull();
      expect(id("b7a1c2d3", "127.0.0.1", [])).toBeNull();
    });

    test("is not made up where there is none", () =>
      expect(createPeers(TRUSTED).requestIdOf(from("10.1.2.3"))).toBeNull());
  });
});
