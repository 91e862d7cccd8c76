import { expect, test } from "vitest";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { holdExam, outcomes, untrue } from "../../support/seller/held-exam.ts";
import { openShop, type Twist } from "../../support/seller/shop.ts";

const chain = await forFile(startTestChain());

/** A shop that takes a payment at any of its routes, and shows them in a document. */
const shows =
  (path: string, document: (origin: string) => unknown): Twist =>
  (told, { url }) =>
    new URL(url).pathname === path
      ? { status: 200, headers: {}, body: JSON.stringify(document(new URL(url).origin)) }
      : told;

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
])("a payment is presented at another route that the seller shows in %s", async (path, twist) => {
  const shop = await open(twist);
  const report = await holdExam(chain, { resource: { url: `${shop.url}/haiku` } });
  expect(untrue(report)).toEqual([]);
  expect(report.level).toBe("full");
  const binding = report.results.find(({ check }) => check === "binding");
  expect(binding?.outcome).toBe("pass");
  expect(binding?.findings[0]?.statement).toBe(
    `A payment for ${shop.url}/haiku is refused at ${shop.url}/sonnet, which ${path} shows, and got 402`,
  );
  expect(elsewhere(report)).toHaveLength(2);
});

test("a document that shows nothing of this origin for sale leads nowhere", async () => {
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
