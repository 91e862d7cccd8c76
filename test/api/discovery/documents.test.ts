import { type AgentCard, verifyAgentCardSignature } from "@a2a-js/sdk";
import type { PaymentRequired } from "@x402/core/types";
import { validateDiscoveryExtension } from "@x402/extensions/bazaar";
import {
  decodeSignedOffers,
  extractReceiptFromResponse,
  type JWSSignedOffer,
  type SignedOffer,
  verifyOfferSignatureJWS,
  verifyReceiptMatchesOffer,
  verifyReceiptSignatureJWS,
} from "@x402/extensions/offer-receipt";
import { describe, expect, test, vi } from "vitest";
import { VERSION } from "../../../api/platform/about.ts";
import { formatUsd } from "../../../api/platform/money.ts";
import { forFile } from "../../support/for-file.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { type Answer, challengeOf, post, send, v1, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { mountedRoutes, SPECIFIED, startScene } from "./scene.ts";

const DAY_MS = 86_400_000;
/** Documents about the service, and images, are not skills. */
const NO_SKILL =
  /^GET \/$|^POST \/mcp$|^GET \/(\.well-known|openapi|llms|agent-|terms|privacy|health|ready|status|favicon|robots|sitemap|receipt|purchases|badge|docs|integrations|packages|pay$|log\/(checkpoint|tile))|\.(png|tlog-proof)$/;

const scene = await forFile(startScene());

const read = (path: string): Promise<Answer> => send(scene.service.url + path);
const routes = () => [...new Set(mountedRoutes(scene.service))];

/** The terms of a route's 402 to an unpaid request, preferred first. Empty for a free route. */
async function offersOf(route: string) {
  const [method, path] = route.split(" ");
  if (method !== "POST") return [];
  const answer = await post(`${scene.service.url}${path}`);
  return answer.status === 402 ? challengeOf(answer).accepts : [];
}

const termsOf = async (route: string) => (await offersOf(route))[0] ?? null;

/** A price as texts for people and models show it. */
const shownPrice = ({ amount, network }: { readonly amount: string; readonly network: string }): string =>
  `${(Number(amount) / 1e6).toFixed(2)} ${network === "eip155:8453" ? "USDC" : "test USDC on Base Sepolia"}`;

describe("home page", () => {
  test("The home page lists every paid route with its price and network, in HTML and in JSON", async () => {
    const page = (await send(scene.service.url, { headers: { accept: "text/html" } })).text;
    const { paid } = (await read("/")).body as { paid: { id: string }[] };
    const expected = [];
    for (const route of routes()) {
      const terms = await termsOf(route);
      if (!terms) continue;
      const { amount, network } = terms;
      const [method, path] = route.split(" ");
      expected.push({ method, path, price: (Number(amount) / 1e6).toFixed(2), network });
      expect(page).toMatch(new RegExp(`>${shownPrice(terms)}</span>\\s*<code[^>]*>${route}</code>`));
    }
    expect(expected.length).toBeGreaterThan(10);
    expect(paid).toEqual(expected.map((one) => expect.objectContaining(one)));
    expect(new Set(paid.map(({ id }) => id)).size).toBe(expected.length);
  });
});

describe("GET /.well-known/x402", () => {
  test("The manifest lists exactly the paid routes, once for each scheme of their 402", async () => {
    const { body } = await read("/.well-known/x402");
    const asked = [];
    for (const route of routes()) {
      const [method, path] = route.split(" ");
      for (const { scheme, network, asset, amount, payTo } of await offersOf(route))
        asked.push({ method, resource: `${scene.service.url}${path}`, scheme, network, asset, amount, payTo });
    }
    expect(new Set(asked.map(({ resource }) => resource)).size).toBeGreaterThan(10);
    expect(asked.flatMap(({ resource, scheme }) => (resource.endsWith("/escrow/demo") ? [scheme] : []))).toEqual([
      "auth-capture",
      "commerce",
    ]);
    const listed = (body.resources as typeof asked).map(
      ({ method, resource, scheme, network, asset, amount, payTo }) => ({
        method,
        resource,
        scheme,
        network,
        asset,
        amount,
        payTo,
      }),
    );
    expect(listed).toEqual(asked);
  });
});

describe("agent card", () => {
  const paths = ["/.well-known/agent-card.json", "/.well-known/agent.json", "/agent-card"];
  const keysOf = async () => (await read("/.well-known/jwks.json")).body.keys as { kid: string }[];

  test.each(paths)("The card at %s has the fields of A2A 1.0 and 0.3 and declares no streaming", async (path) => {
    const { body } = await read(path);
    expect(body).toMatchObject({
      name: "Agent Payment Trust Service",
      version: VERSION,
      capabilities: { streaming: false, pushNotifications: false },
      defaultInputModes: ["application/json"],
      defaultOutputModes: ["application/json"],
      supportedInterfaces: [{ url: scene.service.url, protocolVersion: "1.0" }],
      url: scene.service.url,
      protocolVersion: "0.3.0",
    });
    expect(body).toEqual((await read("/agent-card")).body);
  });

  test("The card lists every route for agents as a skill", async () => {
    const skills = (await read("/agent-card")).body.skills as { id: string; description: string }[];
    const named = skills.map(({ description }) => description.split(" (")[0]?.replace(scene.service.url, ""));
    expect(named.toSorted()).toEqual(
      routes()
        .filter((route) => !NO_SKILL.test(route))
        .toSorted(),
    );
    expect(new Set(skills.map(({ id }) => id)).size).toBe(skills.length);
  });

  test("The A2A SDK verifies the card's signature with a published key and rejects a changed card", async () => {
    const card = (await read("/agent-card")).body as unknown as AgentCard;
    const keys = await keysOf();
    const verify = verifyAgentCardSignature(async (kid) => {
      const jwk = keys.find((key) => key.kid === kid);
      return jwk ?? Promise.reject(new Error(`no key ${kid}`));
    });
    await expect(verify(card)).resolves.toBeUndefined();
    const [skill, ...others] = card.skills;
    // The SDK logs why a signature fails.
    const print = vi.spyOn(console, "debug").mockReturnValue(undefined);
    const dearer = {
      ...skill,
      description: skill?.description.replace(formatUsd(PRICES.basic), "0.01"),
    } as (typeof card.skills)[number];
    await expect(verify({ ...card, skills: [dearer, ...others] })).rejects.toThrow(/No valid signatures/);
    print.mockRestore();
  });
});

describe("texts for language models", () => {
  test.each(["/llms.txt", "/llms-full.txt"])("%s names every route, each paid one with its price", async (path) => {
    const { text, headers } = await read(path);
    expect(headers.get("content-type")).toBe("text/plain; charset=utf-8");
    const lines = text.split("\n");
    for (const route of routes()) {
      const line = lines.findIndex((one) => one === `### ${route}` || one.startsWith(`- [${route}](`));
      expect(lines[line], `${route} in ${path}`).toBeDefined();
      const terms = await termsOf(route);
      if (terms) expect(lines.slice(line, line + 2).join(" ")).toContain(`(${shownPrice(terms)})`);
    }
    expect(SPECIFIED.filter((route) => !text.includes(route))).toEqual([]);
  });

  test("/llms.txt has a title, a summary, an agent's first steps, and working links", async () => {
    const { text } = await read("/llms.txt");
    expect(text.split("\n\n")[2]).toMatch(
      /^First steps for an agent:\n1\. .*\/verify\?wallet=.*\n2\. .*\/test\/basic.* 0\.25 USDC/,
    );
    expect(text).toMatch(/^# .+\n\n> .+\n/);
    const all = [...text.matchAll(/^- \[GET [^{}\]\n]+\]\((\S+)\)/gm)].map(([, link]) => String(link));
    // The log has no checkpoint before its first entry.
    const links = all.filter((link) => !link.endsWith("/log/checkpoint"));
    expect(links.length).toBeGreaterThan(20);
    for (const link of links) expect([200, 400, 402], link).toContain((await send(link)).status);
  });
});

describe("registration file (ERC-8004)", () => {
  test.each(["/agent-registration", "/.well-known/agent-registration.json"])(
    "The file at %s lists reachable services",
    async (path) => {
      const { body } = await read(path);
      expect(body).toMatchObject({
        type: "https://eips.ethereum.org/EIPS/eip-8004#registration-v1",
        name: "Agent Payment Trust Service",
        x402Support: true,
        active: true,
      });
      const { services, image } = body as { services: { endpoint: string }[]; image: string };
      const addresses = [image, ...services.map(({ endpoint }) => endpoint)].filter((one) => one.startsWith("http"));
      for (const address of addresses) expect([200, 405], address).toContain((await send(address)).status);
    },
  );
});

describe("security.txt (RFC 9116)", () => {
  test("security.txt has a contact, its own URL, and an expiry within a year", async () => {
    const { text, headers } = await read("/.well-known/security.txt");
    expect(headers.get("content-type")).toBe("text/plain; charset=utf-8");
    const fields = Object.fromEntries(
      text
        .trim()
        .split("\n")
        .map((line) => line.split(/: (.*)/)),
    );
    expect(fields).toMatchObject({
      Contact: "mailto:security@trust.example",
      Canonical: `${scene.service.url}/.well-known/security.txt`,
      Policy: `${scene.service.url}/terms`,
    });
    const days = (Date.parse(fields.Expires) - Date.now()) / DAY_MS;
    expect(days).toBeGreaterThan(170);
    expect(days).toBeLessThan(365);
  });
});

describe("GET /terms", () => {
  test("The terms are Markdown for programs and a page for people, with every price and the contact", async () => {
    const { text, headers } = await read("/terms");
    const page = await send(`${scene.service.url}/terms`, { headers: { accept: "text/html" } });
    expect(headers.get("content-type")).toBe("text/markdown; charset=utf-8");
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    for (const shown of [text, page.text]) {
      for (const route of routes()) {
        const terms = await termsOf(route);
        if (terms) expect(shown).toContain(`${route} ${shownPrice(terms)}`);
      }
      expect(shown).toContain("mailto:security@trust.example");
    }
  });
});

describe("challenge of a paid route", () => {
  /**
   * The 25 checks that the Coinbase Developer Platform's validator publishes for its Bazaar, under their names, on an
   * unpaid request with or without an empty object. Two cannot pass here: the test's host has no HTTPS, and the
   * escrow's schemes are not `exact`.
   */
  test.each(["", "{}"])("A challenge passes the checks of a Bazaar validator, with the body %j", async (body) => {
    const { url: origin } = scene.service;
    let probed = 0;
    for (const route of routes()) {
      const [method = "", path] = route.split(" ");
      if (method !== "POST" || (await offersOf(route)).length === 0) continue;
      const answer = await post(`${origin}${path}`, {}, body);
      const isEscrow = path === "/escrow/demo";
      expect({ route, failed: failedChecks(answer, { url: `${origin}${path}`, method, isEscrow }) }).toEqual({
        ...{ route, failed: [] },
      });
      probed += 1;
    }
    expect(probed).toBeGreaterThan(10);
  });

  test("A challenge is a valid Bazaar entry that describes the members of body and response", async () => {
    for (const route of routes()) {
      const terms = await termsOf(route);
      if (terms?.scheme !== "exact") continue;
      const answer = await post(`${scene.service.url}${route.split(" ")[1]}`);
      const { bazaar } = challengeOf(answer).extensions as { bazaar: Parameters<typeof validateDiscoveryExtension>[0] };
      expect({ route, ...validateDiscoveryExtension(bazaar) }).toMatchObject({ route, valid: true });
      expect(JSON.stringify(bazaar.schema), route).toMatch(/"example":\{"type":"(object|array)","(properties|items)":/);
    }
  });
});

type Entry = Parameters<typeof validateDiscoveryExtension>[0];

function failedChecks(answer: Answer, probed: { url: string; method: string; isEscrow: boolean }): readonly string[] {
  const challenge = challengeOf(answer);
  const [first] = challenge.accepts;
  const bazaar = challenge.extensions?.bazaar as Entry | undefined;
  const info = bazaar?.info as { input?: Record<string, unknown>; output?: Record<string, unknown> } | undefined;
  const isAddress = (text = "") => /^0x[0-9a-fA-F]{40}$/.test(text);
  const checks: Readonly<Record<string, boolean>> = {
    url_valid: URL.canParse(challenge.resource.url),
    returns_402: answer.status === 402,
    valid_json: Object.keys(answer.body).length > 0,
    x402_version: challenge.x402Version === 2,
    payment_required_header: answer.headers.has("payment-required"),
    has_accepts: challenge.accepts.length > 0,
    "accepts[0].scheme": first?.scheme === (probed.isEscrow ? "auth-capture" : "exact"),
    "accepts[0].network": /^eip155:(8453|84532)$/.test(first?.network ?? ""),
    "accepts[0].asset": isAddress(first?.asset),
    "accepts[0].amount": Number(first?.amount) >= 1_000,
    "accepts[0].payTo": isAddress(first?.payTo),
    "accepts[0].maxTimeoutSeconds": Number(first?.maxTimeoutSeconds) > 0,
    has_resource: challenge.resource.url === probed.url && /^.{10,450}$/.test(challenge.resource.description ?? ""),
    has_bazaar_extension: bazaar !== undefined,
    "bazaar.info": info !== undefined,
    "bazaar.info.input": info?.input?.bodyType === "json" && typeof info.input.body === "object",
    "bazaar.info.input.type": info?.input?.type === "http",
    "bazaar.info.input.method": info?.input?.method === probed.method,
    "bazaar.info.output": info?.output?.type === "json",
    "bazaar.info.output.example": typeof info?.output?.example === "object",
    "bazaar.schema": bazaar?.schema.$schema === "https://json-schema.org/draft/2020-12/schema",
    parse: bazaar !== undefined && validateDiscoveryExtension(bazaar).valid,
  };
  return Object.entries(checks).flatMap(([check, passed]) => (passed ? [] : [check]));
}

describe("Offers and receipts", () => {
  const { service, chain } = scene;

  const offersOf = ({ extensions }: Pick<PaymentRequired, "extensions">): readonly SignedOffer[] =>
    (extensions as { "offer-receipt": { info: { offers: SignedOffer[] } } })["offer-receipt"].info.offers;

  const basic = `${service.url}/test/basic`;

  /** Every 402 of the service, by path. */
  async function unpaid(
    at = service.url,
  ): Promise<readonly (readonly [path: string, header: string, challenge: PaymentRequired, body: Answer["body"]])[]> {
    const paths = mountedRoutes(service).flatMap((route) => (route.startsWith("POST ") ? [route.slice(5)] : []));
    const found = [];
    for (const path of new Set(paths)) {
      const answer = await post(at + path);
      if (answer.status !== 402) continue;
      found.push([path, answer.headers.get("payment-required") ?? "", challengeOf(answer), answer.body] as const);
    }
    return found;
  }

  test("Every 402 has a signed offer for each of its terms, and a stock verifier attributes it to the service", async () => {
    const asked = await unpaid();
    expect(asked.length).toBeGreaterThan(10);
    for (const [path, , { accepts, resource, extensions }, body] of asked) {
      // Offers too long for the header are in the body.
      const signed = extensions?.["offer-receipt"] === undefined ? body : { extensions };
      const offers = offersOf(signed) as readonly JWSSignedOffer[];
      expect(offers.map(({ format, acceptIndex }) => [format, acceptIndex])).toEqual(accepts.map((_, n) => ["jws", n]));
      for (const [index, { scheme, network, asset, payTo, amount }] of accepts.entries()) {
        // Looks the key up in the host's did:web document.
        const { validUntil, ...offer } = await verifyOfferSignatureJWS(offers[index] as JWSSignedOffer);
        const resourceUrl = `${service.url}${path}`;
        expect(resource?.url).toBe(resourceUrl);
        expect(offer).toEqual({ version: 1, resourceUrl, scheme, network, asset, payTo, amount });
        // Five minutes, rounded up to the end of the minute.
        expect(validUntil % 60).toBe(0);
        expect(validUntil).toBeGreaterThan(Date.now() / 1000 + 290);
      }
    }
  });

  /** The receipt of a paid response, verified by the stock library. */
  async function receiptOf(answer: Answer) {
    const receipt = extractReceiptFromResponse(new Response(null, { headers: answer.headers }));
    if (receipt?.format !== "jws") throw new Error("no receipt");
    return { receipt, payload: await verifyReceiptSignatureJWS(receipt) };
  }

  test.each([
    ["version 1", v1],
    ["version 2", v2],
  ] as const)("A paid response and its replay have a receipt that matches the offer (%s)", async (_, headers) => {
    const payer = await newPayer(chain);
    const [offer] = decodeSignedOffers([...offersOf(challengeOf(await post(basic)))]);
    const signed = await signPayment(payer);
    const paid = await post(basic, headers(signed));
    const replay = await post(basic, headers(signed));
    expect([paid.status, replay.status]).toEqual([200, 200]);
    const { transaction } = paid.body.settlement as { transaction: string };
    expect(replay.headers.get("payment-response")).toBe(paid.headers.get("payment-response"));
    for (const answer of [paid, replay]) {
      const { receipt, payload } = await receiptOf(answer);
      expect(payload).toEqual({
        version: 1,
        network: "eip155:8453",
        resourceUrl: basic,
        payer: payer.address.toLowerCase(),
        issuedAt: expect.any(Number),
        transaction,
      });
      expect(Math.abs(payload.issuedAt - Date.now() / 1000)).toBeLessThan(60);
      expect(offer && verifyReceiptMatchesOffer(receipt, offer, [payer.address])).toBe(true);
    }
  });

  test("A rejected payment has no receipt, and its 402 makes a new offer", async () => {
    const payer = await newPayer(chain, 0n);
    const refused = await post(basic, v2(await signPayment(payer)));
    expect(refused.status).toBe(402);
    expect(refused.headers.get("payment-response")).toBeNull();
    expect(offersOf(challengeOf(refused))).toHaveLength(1);
  });
});
