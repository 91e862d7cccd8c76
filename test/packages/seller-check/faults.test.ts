import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo, LookupFunction } from "node:net";
import { encodePaymentRequiredHeader } from "@x402/core/http";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { createChain } from "../../../api/platform/chain/chain.ts";
import type { NetworkFacts } from "../../../api/platform/networks.ts";
import { createExamLedger } from "../../../api/sellers/chain.ts";
import { MOST_PAYMENTS } from "../../../packages/seller-check/src/exam/exam-wallet.ts";
import type { FindingCode } from "../../../packages/seller-check/src/exam/remedies.ts";
import { MOST_REQUESTS } from "../../../packages/seller-check/src/exam/visit.ts";
import { CHECKS } from "../../../packages/seller-check/src/exam/vocabulary.ts";
import { httpTransport } from "../../../packages/seller-check/src/http-transport.ts";
import { chainLedger, ExaminersFault } from "../../../packages/seller-check/src/index.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { startFaultyNode, stoppedAt, unreachable } from "../../support/chain/nodes.ts";
import { forFile } from "../../support/for-file.ts";
import { submit } from "../../support/payments/on-chain.ts";
import { signPayment } from "../../support/payments/signing.ts";
import { failedCodes, failedStatements, holdExam, lookAt, outcomes } from "../../support/sellers/held-exam.ts";
import {
  alsoInVersion1,
  answering,
  type Fault,
  openShop,
  priced,
  quoting,
  type Shop,
  settling,
  signedAs,
  type Twist,
} from "../../support/sellers/shop.ts";

const chain = await forFile(startTestChain());
const body = JSON.stringify({ about: "rain" });
const free = (response: { readonly headers: Record<string, string> }) => ({
  ...response,
  status: 200,
  body: "a haiku",
});

/** Findings that no fault of a shop shows. Other tests cover them. */
type Elsewhere = "terms.same_over_ip" | "purchase.payable";

/** A fault for each finding that shows that the finding can fail. */
const PLANTED: Readonly<Record<Exclude<FindingCode, Elsewhere>, Fault | Twist>> = {
  "terms.answers_402": answering("GET", free),
  "terms.well_formed": quoting(() => ({ x402Version: 2 })),
  "terms.names_this_url": "names another resource",
  "terms.versions_agree": alsoInVersion1("1001"),
  "terms.same_again": "another price each time",
  "terms.same_later": quoting(priced("1001"), ({ sales }) => sales > 0),
  "terms.head": "HEAD is free",
  "terms.other_method": answering("POST", free),
  "terms.header_size": (response) => ({ ...response, headers: { ...response.headers, "x-long": "x".repeat(8_192) } }),
  "purchase.served": "charges and fails",
  "purchase.not_charged": "charges and fails",
  "purchase.charged": "never settles",
  "purchase.response": settling(() => null),
  "purchase.response_success": settling((response) => ({ ...response, success: false })),
  "purchase.response_transaction": "names another transaction",
  "replay.again": "serves a replay",
  "replay.copies_served": "sells once",
  "replay.copies_one_result": "no lock",
  "binding.other_body": "any body",
  "binding.other_route": "any route",
  "binding.other_route_charged": "any route",
  "forgery.refused": "checks no signature",
  "forgery.not_settled": "takes less",
  "forgery.charged_as_quoted": "takes less",
  "lost_answer.answered": "forgets answers",
  "lost_answer.not_charged": "forgets answers",
  "caching.not_stored": "public cache",
  "caching.unpaid_after": "free after a sale",
  "offer_receipt.offer_read": quoting(signedAs("offers", (offer) => ({ ...offer, format: "pgp" }))),
  "offer_receipt.offer_true": "offers another amount",
  "offer_receipt.receipt_read": settling(signedAs("receipt", () => "received")),
  "offer_receipt.receipt_true": settling(
    signedAs("receipt", (receipt) => ({ ...receipt, payload: { ...(receipt.payload as object), payer: "0x00" } })),
  ),
  "offer_receipt.receipt_transaction": settling(
    signedAs("receipt", (receipt) => ({
      ...receipt,
      payload: { ...(receipt.payload as object), transaction: "0x00" },
    })),
  ),
};

/** Returns whether a finding needs no payment. */
const isUnpaid = (code: string): boolean => code.startsWith("terms.") && code !== "terms.same_later";
/** Shared caches store only GET, and only a request with a body has another method. */
const METHODS: Readonly<Record<string, "GET">> = { "terms.other_method": "GET", "caching.not_stored": "GET" };

async function examined(fault: Fault | Twist | null, code = "") {
  const shop = await forFile(openShop(chain, fault));
  const request = METHODS[code] === "GET" || code === "terms.answers_402" ? {} : { method: "POST", body };
  const resource = { url: `${shop.url}/haiku`, ...request };
  if (isUnpaid(code)) return lookAt(chain, { resource });
  return holdExam(chain, { resource, other: { url: `${shop.url}/sonnet`, method: "POST", body } });
}

test("An honest seller passes every check, with at most 40 requests and three payments", async () => {
  const report = await examined(null);
  expect(failedStatements(report)).toEqual([]);
  expect(outcomes(report)).toEqual(Object.fromEntries(CHECKS.map((check) => [check, "pass"])));
  expect(report).toMatchObject({ level: "full", spent: 1_000n * BigInt(MOST_PAYMENTS) });
  expect(report.exchanges.length).toBeLessThanOrEqual(MOST_REQUESTS);
  // An honest seller gets all findings except those that cannot apply to it.
  const looked = new Set(report.results.flatMap(({ findings }) => findings.map(({ code }) => code)));
  expect(Object.keys(PLANTED).filter((code) => !looked.has(code as FindingCode))).toEqual([
    "terms.versions_agree",
    "purchase.not_charged",
  ]);
});

test.each(Object.entries(PLANTED))("A seller with the fault for %s fails it", async (code, fault) => {
  const report = await examined(fault, code);
  expect(failedCodes(report), failedStatements(report).join("\n")).toContain(code);
  expect(outcomes(report)[code.split(".")[0] ?? ""]).toBe("fail");
  expect(report.spent).toBeLessThanOrEqual(3_010n);
});

test("A seller that the token refuses to pay fails for that reason and gets no money", async () => {
  const shop = await forFile(openShop(chain));
  await chain.blacklist(shop.payTo);
  const report = await holdExam(chain, { resource: { url: `${shop.url}/haiku` } });
  expect(failedCodes(report)).toEqual(["purchase.payable", "purchase.served"]);
  expect(report).toMatchObject({ level: null, spent: 0n });
});

/** A name with an IPv4 and an IPv6 address, both of this machine. */
const NAME = "both.test";
const lookupBoth: LookupFunction = (_, { all, family }, found) => {
  const addresses = [
    { address: "127.0.0.1", family: 4 },
    { address: "::1", family: 6 },
  ].filter((one) => !family || one.family === family);
  if (all) found(null, addresses);
  else found(null, addresses[0]?.address ?? "", addresses[0]?.family);
};

/**
 * A server that quotes `amounts` in atomic USDC, by the IP version of the request. It sells nothing. @returns its URL
 * under a name with both addresses, or null if this machine has no IPv6
 */
async function openDoor(network: NetworkFacts, amounts: Readonly<Record<4 | 6, string>>): Promise<string | null> {
  const door = (family: 4 | 6) => listener(network, amounts[family]);
  for (;;) {
    const four = await listening(door(4), { host: "127.0.0.1", port: 0 });
    const { port } = four.address() as AddressInfo;
    const six = await listening(door(6), { host: "::1", port }).catch((error: NodeJS.ErrnoException) => error.code);
    await forFile(four);
    if (six === "EADDRINUSE") continue;
    if (typeof six !== "object") return null;
    await forFile(six);
    return `http://${NAME}:${port}/haiku`;
  }
}

function listening(answer: RequestListener, at: { readonly host: string; readonly port: number }): Promise<Server> {
  const server = createServer(answer);
  return new Promise((resolve, reject) => server.on("error", reject).listen(at, () => resolve(server)));
}

const listener =
  ({ id, usdc }: NetworkFacts, amount: string): RequestListener =>
  ({ method, headers }, response) => {
    if (method !== "GET") return void response.writeHead(405).end();
    const extra = { name: usdc.name, version: usdc.version };
    const payTo = "0x00000000000000000000000000000000000c0ffe";
    const entry = { scheme: "exact", network: id, asset: usdc.address, amount, payTo, maxTimeoutSeconds: 60, extra };
    const resource = { url: `http://${headers.host}/haiku` };
    const terms = { x402Version: 2, resource, accepts: [entry] };
    const header = encodePaymentRequiredHeader(terms as Parameters<typeof encodePaymentRequiredHeader>[0]);
    response.writeHead(402, { "payment-required": header }).end("{}");
  };

/** Too expensive for the exam, so only the quotes are compared. */
const DEAR = "900000";

test.each([
  [{ 4: DEAR, 6: DEAR }, true],
  [{ 4: DEAR, 6: "900001" }, false],
])("IPv4 and IPv6 must quote the same price: %j, %s", async (amounts, holds) => {
  const url = await openDoor(chain.network, amounts);
  const transport = httpTransport({ lookup: lookupBoth });
  const { results } = await lookAt(chain, { resource: { url: url ?? "http://127.0.0.1:9/" }, transport });
  const compared = results[0]?.findings.filter(({ code }) => code === "terms.same_over_ip");
  expect(compared).toMatchObject(url === null ? [] : [{ holds, exchanges: [4, 5] }]);
});

test.each([
  [402, true],
  [405, true],
  [301, true],
  [204, false],
])("A HEAD response with status %i delivers nothing for free: %s", async (status, holds) => {
  const shop = await forFile(
    openShop(
      chain,
      answering("HEAD", () => ({ status, headers: {}, body: "" })),
    ),
  );
  const report = await lookAt(chain, { resource: { url: `${shop.url}/haiku` } });
  expect(failedCodes(report)).toEqual(holds ? [] : ["terms.head"]);
});

test("A HEAD response with another price fails the terms", async () => {
  const shop = await forFile(
    openShop(
      chain,
      quoting(priced("999"), ({ method }) => method === "HEAD"),
    ),
  );
  expect(failedCodes(await lookAt(chain, { resource: { url: `${shop.url}/haiku` } }))).toEqual(["terms.head"]);
});

/** Responds to the first copy of each payment with 202. */
function promising(words: () => string): Twist {
  const seen = new Set<string>();
  return (response) => {
    const sale = response.headers["payment-response"];
    if (sale === undefined || seen.has(sale)) return response;
    seen.add(sale);
    return { ...response, status: 202, body: words() };
  };
}

test("A seller who promises a result and delivers it later passes", async () => {
  const shop = await forFile(
    openShop(
      chain,
      promising(() => "soon"),
    ),
  );
  expect(failedStatements(await holdExam(chain, { resource: { url: `${shop.url}/haiku` } }))).toEqual([]);
});

test("A seller who promises a new result for every copy of a payment sells it more than once", async () => {
  let promises = 0;
  const shop = await forFile(
    openShop(chain, (response) =>
      response.status === 200 ? { ...response, status: 202, body: `job ${++promises}` } : response,
    ),
  );
  const report = await holdExam(chain, { resource: { url: `${shop.url}/haiku` } });
  expect(failedCodes(report)).toEqual(["replay.again", "replay.copies_one_result"]);
});

test("An exam of a seller who is too expensive sends only unpaid requests, signs nothing, and gives no level", async () => {
  const shop = await forFile(openShop(chain));
  const report = await lookAt(chain, { resource: { url: `${shop.url}/haiku` } });
  expect(report).toMatchObject({ level: null, spent: 0n });
  expect(report.exchanges).toHaveLength(4);
  expect(report.exchanges.every(({ request }) => request.headers["payment-signature"] === undefined)).toBe(true);
  const { terms, ...others } = outcomes(report);
  expect([terms, new Set(Object.values(others))]).toEqual(["pass", new Set(["not_applicable"])]);
});

const node = await forFile(startFaultyNode(chain));
const ledger = createExamLedger(createChain("eip155:8453", { rpcUrl: node.url, logBlockRange: 1_000 }));

const failure = (exam: Promise<unknown>): Promise<unknown> =>
  exam.then(
    () => "the exam was held",
    (error: unknown) => error,
  );

/** Runs `work` once, before the shop responds to its first payment as quoted. The five before it are forged. */
function atThePurchase(shop: Shop, work: () => Promise<void> | void): void {
  let paid = 0;
  shop.before(({ isPaid }) => (isPaid && ++paid === 6 ? work() : undefined));
}

test("A node that stays behind while the seller settles gives no verdict on the seller", async () => {
  const shop = await forFile(openShop(chain));
  const head = await chain.client.getBlockNumber();
  // The payer must get its money first.
  atThePurchase(shop, async () => node.become(stoppedAt((await chain.client.getBlockNumber()) || head)));
  const failed = await failure(holdExam(chain, { resource: { url: `${shop.url}/haiku` }, ledger }));
  node.become(null);
  expect(failed).toBeInstanceOf(ExaminersFault);
  expect(String(failed)).toMatch(/does not show the outcome of/);
});

test("A node that becomes unreachable during the exam gives no verdict on the seller", async () => {
  const shop = await forFile(openShop(chain));
  atThePurchase(shop, () => node.become(unreachable));
  const failed = await failure(holdExam(chain, { resource: { url: `${shop.url}/haiku` }, ledger }));
  node.become(null);
  expect(failed).toBeInstanceOf(ExaminersFault);
});

test("Behind a node that lags, no signed payment has expired when it is presented", async () => {
  const shop = await forFile(openShop(chain));
  const local = await chainLedger(chain.rpcUrl);
  const late = { ...local, now: async () => (await local.now()) - 120 };
  expect(failedStatements(await holdExam(chain, { resource: { url: `${shop.url}/haiku` }, ledger: late }))).toEqual([]);
});

test("With a payer one unit short, the exam reports it and requests only the seller's quote", async () => {
  const shop = await forFile(openShop(chain));
  const payer = privateKeyToAccount(generatePrivateKey());
  await chain.fund(payer.address, 3_000n);
  const failed = await failure(holdExam(chain, { resource: { url: `${shop.url}/haiku` }, payer }));
  expect(String(failed)).toMatch(/has 0\.003 USDC \(token 0x\w+\), but an exam needs 0\.003001 USDC/);
  expect(shop.requests()).toBe(4);
  await chain.fund(payer.address, 1n);
  expect(failedStatements(await holdExam(chain, { resource: { url: `${shop.url}/haiku` }, payer }))).toEqual([]);
});

test("A paused token, or a payer on its blacklist, fails no seller", async () => {
  const shop = await forFile(openShop(chain));
  const payer = privateKeyToAccount(generatePrivateKey());
  await chain.fund(payer.address, 1_000_000n);
  const fails = async (pattern: RegExp) => {
    const failed = await failure(holdExam(chain, { resource: { url: `${shop.url}/haiku` }, payer }));
    expect(failed).toBeInstanceOf(ExaminersFault);
    expect(String(failed)).toMatch(pattern);
  };
  const asked = shop.requests();
  await chain.pause();
  await fails(/is paused/);
  expect(shop.requests() - asked).toBe(4);
  await chain.unpause();
  atThePurchase(shop, chain.pause);
  await fails(/is paused/);
  await chain.unpause();
  atThePurchase(shop, () => chain.blacklist(payer.address));
  await fails(/has the account 0x\w+ on its blacklist/);
  shop.before(() => undefined);
  await fails(/has the account 0x\w+ on its blacklist/);
});

test("Our node reports the same obstacles to payments as any other node", async () => {
  const [payer, payee] = [privateKeyToAccount(generatePrivateKey()), privateKeyToAccount(generatePrivateKey())];
  const asked = { asset: chain.network.usdc.address, from: payer.address, payee: payee.address, nonces: [] };
  const shown = async () => {
    const local = await chainLedger(chain.rpcUrl);
    const [one, other] = [await ledger.read(asked), await local.read(asked)];
    expect(one.bars).toEqual(other.bars);
    return [...one.bars];
  };
  expect(await shown()).toEqual([]);
  await chain.blacklist(payee.address);
  expect(await shown()).toEqual(["payee"]);
  await chain.pause();
  expect(await shown()).toEqual(["paused", "payee"]);
  await chain.unpause();
});

test("A payer whose money is spent elsewhere during the exam fails no seller", async () => {
  const shop = await forFile(openShop(chain));
  const payer = privateKeyToAccount(generatePrivateKey());
  await chain.fund(payer.address, 3_001n);
  atThePurchase(shop, async () => void (await submit(chain, await signPayment(payer, { value: 3_001n }))));
  const failed = await failure(holdExam(chain, { resource: { url: `${shop.url}/haiku` }, payer }));
  expect(failed).toBeInstanceOf(ExaminersFault);
  expect(String(failed)).toMatch(/ran short of money/);
});

test("A seller that charges and delivers nothing fails, although the payer's money is gone at the end", async () => {
  const shop = await forFile(openShop(chain, "charges and fails"));
  const payer = privateKeyToAccount(generatePrivateKey());
  await chain.fund(payer.address, 3_001n);
  const report = await holdExam(chain, { resource: { url: `${shop.url}/haiku` }, payer });
  expect(failedStatements(report).join()).toContain("Nothing is charged for a refused payment");
});
