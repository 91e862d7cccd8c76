import { expect, test } from "vitest";
import { namedRoute } from "../../../packages/seller-check/src/exam/other-routes.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { failedStatements, holdExam, outcomes } from "../../support/sellers/held-exam.ts";
import { openShop, type Twist } from "../../support/sellers/shop.ts";

const chain = await forFile(startTestChain());

/** A shop that accepts a payment at all of its routes and lists them in a document. */
const shows =
  (path: string, document: (origin: string) => unknown): Twist =>
  (response, { url }) =>
    new URL(url).pathname === path
      ? { status: 200, headers: {}, body: JSON.stringify(document(new URL(url).origin)) }
      : response;

const open = (twist: Twist) => forFile(openShop(chain, twist));
const elsewhere = (report: Awaited<ReturnType<typeof holdExam>>) =>
  report.exchanges.filter(({ request }) => request.url.endsWith("/sonnet"));

test.each<[string, Twist]>([
  [
    "/.well-known/x402",
    shows("/.well-known/x402", (origin) => ({ resources: [`${origin}/haiku`, `${origin}/sonnet`] })),
  ],
  [
    "/.well-known/x402",
    shows("/.well-known/x402", (origin) => ({ items: [{ resource: `${origin}/sonnet`, method: "GET" }] })),
  ],
  [
    "/openapi.json",
    shows("/openapi.json", () => ({
      paths: {
        "/free": { get: { responses: { 200: {} } } },
        "/haiku/{id}": { get: { responses: { 402: {} } } },
        "/sonnet": { get: { responses: { 402: {} } } },
      },
    })),
  ],
])("A payment is presented at another route that the seller lists in %s", async (path, twist) => {
  const shop = await open(twist);
  const report = await holdExam(chain, { resource: { url: `${shop.url}/haiku` } });
  expect(failedStatements(report)).toEqual([]);
  expect(report.level).toBe("full");
  const binding = report.results.find(({ check }) => check === "binding");
  expect(binding?.outcome).toBe("pass");
  expect(binding?.findings[0]?.statement).toBe(
    `A payment for ${shop.url}/haiku is refused at ${shop.url}/sonnet, which ${path} shows (got 402)`,
  );
  expect(elsewhere(report)).toHaveLength(2);
});

test("A listed route that may not be requested gets no request", async () => {
  const shop = await open(shows("/.well-known/x402", (origin) => ({ resources: [`${origin}/sonnet`] })));
  const isAllowed = (url: string) => new URL(url).pathname.startsWith("/haiku");
  const report = await holdExam(chain, { resource: { url: `${shop.url}/haiku` }, isAllowed });
  expect([report.level, outcomes(report).binding]).toEqual(["full", "not_applicable"]);
  expect(elsewhere(report)).toEqual([]);
});

test("A document without another route of this origin for sale is not followed", async () => {
  const twist = shows("/.well-known/x402", (origin) => ({
    resources: [
      "http://127.0.0.1:9/sonnet",
      "https://elsewhere.example/",
      "javascript:alert(1)",
      `${origin.replace("//", "//user:secret@")}/haiku`,
      `${origin}/haiku?other=1`,
      `${origin}/poem/:id`,
      { url: `${origin}/sonnet`, method: "DELETE" },
      { url: { url: 7 } },
      null,
      `${origin}/nothing`,
    ],
  }));
  const shop = await open(twist);
  const report = await holdExam(chain, { resource: { url: `${shop.url}/haiku` } });
  expect(outcomes(report)).toMatchObject({ binding: "not_applicable", lost_answer: "pass" });
  expect(report.results.find(({ check }) => check === "binding")?.reason).toMatch(/no other paid route/);
  expect(new Set(report.exchanges.map(({ request }) => new URL(request.url).origin))).toEqual(new Set([shop.url]));
  expect(new Set(report.exchanges.map(({ request }) => request.method))).toEqual(new Set(["GET", "HEAD", "POST"]));
});

const named = (url: string) => ({ url, method: "GET", body: null });
const bindingOf = ({ results }: Awaited<ReturnType<typeof holdExam>>) =>
  results.find(({ check }) => check === "binding");

test("A payment is presented at the configured route before any that the seller lists", async () => {
  const shop = await open(
    shows("/.well-known/x402", (origin) => ({ resources: [`${origin}/haiku`, `${origin}/free`] })),
  );
  const report = await holdExam(chain, { resource: { url: `${shop.url}/haiku` }, other: named(`${shop.url}/sonnet`) });
  expect(report.level).toBe("full");
  expect(bindingOf(report)?.findings[0]?.statement).toBe(
    `A payment for ${shop.url}/haiku is refused at ${shop.url}/sonnet (got 402)`,
  );
  expect(report.exchanges.some(({ request }) => request.url.endsWith("/.well-known/x402"))).toBe(false);
});

test("A configured route that is not for sale is left alone, and the seller's list is still used", async () => {
  const shop = await open(shows("/.well-known/x402", (origin) => ({ resources: [`${origin}/sonnet`] })));
  const report = await holdExam(chain, { resource: { url: `${shop.url}/haiku` }, other: named(`${shop.url}/free`) });
  expect(elsewhere(report)).toHaveLength(2);
  expect(bindingOf(report)).toMatchObject({ outcome: "pass" });
  expect(bindingOf(report)?.findings.map(({ statement }) => statement)).toEqual([
    expect.stringMatching(/is refused at .*\/sonnet, which/),
    "Nothing is charged there",
    `The other route ${shop.url}/free is not tested because it is not paid`,
  ]);
});

test("With only a configured route that is not for sale, the check does not apply", async () => {
  const shop = await forFile(openShop(chain));
  const report = await holdExam(chain, { resource: { url: `${shop.url}/haiku` }, other: named(`${shop.url}/free`) });
  expect(bindingOf(report)).toMatchObject({
    outcome: "not_applicable",
    reason: expect.stringMatching(/\/free is not tested because it is not paid, and the request has no body/),
    findings: [],
  });
});

test("A route whose 402 names the same resource is left alone, because a payment for it may be valid there", async () => {
  const alias: Twist = (response, { url }) => {
    const header = response.headers["payment-required"];
    if (header === undefined || !url.endsWith("/sonnet")) return response;
    const terms = JSON.parse(Buffer.from(header, "base64").toString("utf8"));
    const resource = { ...terms.resource, url: terms.resource.url.replace("/sonnet", "/haiku") };
    const changed = Buffer.from(JSON.stringify({ ...terms, resource })).toString("base64");
    return { ...response, headers: { ...response.headers, "payment-required": changed } };
  };
  const shop = await open(alias);
  const report = await holdExam(chain, { resource: { url: `${shop.url}/haiku` }, other: named(`${shop.url}/sonnet`) });
  expect(bindingOf(report)).toMatchObject({
    outcome: "not_applicable",
    reason: expect.stringMatching(/same resource/),
  });
  expect(elsewhere(report)).toHaveLength(1);
});

const RESOURCE = { url: "https://seller.example/haiku?style=old", method: "GET", body: null, contentType: "a/b" };

test.each([
  ["/sonnet", "https://seller.example/sonnet"],
  ["/sonnet?style=old#third-line", "https://seller.example/sonnet?style=old"],
  ["HTTPS://SELLER.example:443/sonnet", "https://seller.example/sonnet"],
  ["/haiku/sonnet", "https://seller.example/haiku/sonnet"],
  ["/haiku/../sonnet", "https://seller.example/sonnet"],
  ["/%zz", "https://seller.example/%zz"],
])("%s is another route of the seller", (text, url) => {
  expect(namedRoute(text, RESOURCE)).toEqual({ url, method: "GET", body: null });
});

test("Another route is requested with the resource's method and body", () => {
  const posted = { ...RESOURCE, method: "POST", body: "{}" };
  expect(namedRoute("/sonnet", posted)).toEqual({ url: "https://seller.example/sonnet", method: "POST", body: "{}" });
});

test.each([
  ["sonnet", /expected a path/],
  ["javascript:alert(1)", /expected a path/],
  ["https://", /expected a path/],
  ["http://seller.example/sonnet", /is at http:\/\/seller\.example; expected another URL of https/],
  ["https://seller.example.evil.example/sonnet", /is at /],
  ["//evil.example/sonnet", /is at https:\/\/evil\.example/],
  ["/\\evil.example/sonnet", /is at https:\/\/evil\.example/],
  ["https://seller.example@evil.example/sonnet", /is at https:\/\/evil\.example/],
  ["https://me:secret@seller.example/sonnet", /credentials/],
  ["/haiku", /the request itself/],
  ["/haiku?another", /the request itself/],
  ["/HAIKU/", /the request itself/],
  ["//seller.example//haiku", /the request itself/],
  ["/h%61iku", /the request itself/],
  ["/haiku;jsessionid=1", /the request itself/],
  [`/${"s".repeat(2_048)}`, /2048 characters/],
])("%s is not another route of the seller", (text, reason) => {
  expect(namedRoute(text, RESOURCE)).toMatch(reason);
});
