import { expect, test } from "vitest";
import { MOST_PAYMENTS, MOST_REQUESTS } from "../../../packages/seller-check/src/exam/visit.ts";
import { httpTransport } from "../../../packages/seller-check/src/http-transport.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { lookupBoth, openDoor } from "../../support/seller/both-families.ts";
import { holdExam, outcomes, untrue } from "../../support/seller/held-exam.ts";
import { type Fault, openShop } from "../../support/seller/shop.ts";

const chain = await forFile(startTestChain());
const EVERY_CHECK = ["terms", "purchase", "replay", "binding", "forgery", "lost_answer", "caching", "offer_receipt"];

async function examined(fault: Fault | null) {
  const shop = await forFile(openShop(chain, fault));
  // Only an answer to GET is for shared caches.
  if (fault === "public cache") return holdExam(chain, { resource: { url: `${shop.url}/haiku` } });
  const body = JSON.stringify({ about: "rain" });
  const other = { url: `${shop.url}/sonnet`, method: "POST", body };
  return holdExam(chain, { resource: { url: `${shop.url}/haiku`, method: "POST", body }, other });
}

test("an honest seller passes every check, with at most 40 requests and three payments", async () => {
  const report = await examined(null);
  expect(untrue(report)).toEqual([]);
  expect(outcomes(report)).toEqual(Object.fromEntries(EVERY_CHECK.map((check) => [check, "pass"])));
  expect(report).toMatchObject({ level: "full", spent: 1_000n * BigInt(MOST_PAYMENTS) });
  expect(report.exchanges.length).toBeLessThanOrEqual(MOST_REQUESTS);
});

test.each<[Fault, string]>([
  ["another price each time", "terms"],
  ["HEAD is free", "terms"],
  ["names another resource", "terms"],
  ["names another transaction", "purchase"],
  ["charges and fails", "purchase"],
  ["serves a replay", "replay"],
  ["no lock", "replay"],
  ["any route", "binding"],
  ["any body", "binding"],
  ["takes less", "forgery"],
  ["checks no signature", "forgery"],
  ["forgets answers", "lost_answer"],
  ["public cache", "caching"],
  ["free after a sale", "caching"],
  ["offers another amount", "offer_receipt"],
])("a seller with the fault '%s' fails %s", async (fault, check) => {
  const report = await examined(fault);
  expect(outcomes(report)[check], untrue(report).join("\n")).toBe("fail");
  expect(report.spent).toBeLessThanOrEqual(3_010n);
});

/** Too dear to be paid: only the quotes are looked at. */
const DEAR = "900000";

test.each([
  [{ 4: DEAR, 6: DEAR }, true],
  [{ 4: DEAR, 6: "900001" }, false],
])("IPv4 and IPv6 are to quote the same: with %j that is %s", async (amounts, holds) => {
  const url = await openDoor(chain.network, amounts);
  const transport = httpTransport({ lookup: lookupBoth });
  const { results } = await holdExam(chain, { resource: { url: url ?? "http://127.0.0.1:9/" }, transport });
  const compared = results[0]?.findings.filter(({ statement }) => /^IPv4 and IPv6 are quoted/.test(statement));
  expect(compared).toEqual(url === null ? [] : [{ statement: expect.anything(), holds, exchanges: [5, 6] }]);
});
