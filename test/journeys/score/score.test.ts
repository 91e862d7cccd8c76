import { randomUUID } from "node:crypto";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { connect } from "../../../api/platform/db/connection.ts";
import { createActivityIndex } from "../../../api/platform/index/activity.ts";
import { parseKeySet, replayScores, type ScoreDocument, verifyDocument } from "../../../packages/verifier/src/index.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { deployEscrow, hold, newMerchant, statusOf } from "../../support/escrow/contract.ts";
import { deliver } from "../../support/escrow/delivery.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { launchIndexerOf } from "../../support/indexer/launched.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { chargedOnce, nothingCharged } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { type Answer, post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { sampleOrder, sampleResult, storeExam } from "../../support/sellers/samples.ts";
import { PAY_TO } from "../../support/service/environment.ts";
import { startService } from "../../support/service/service.ts";
import { waitUntil } from "../../support/wait-until.ts";

// Buys from the service over the real index, with one Ponder for the whole file.

const chain = await forFile(startTestChain({ mining: { everySeconds: 1 } }));
const escrow = await deployEscrow(chain);
const service = await forFile(startService({ chain, config: { escrowAddresses: [escrow.address] } }));
const agent = await newPayer(chain);
const indexer = await forFile(launchIndexerOf({ chain, database: service.database, escrows: [escrow] }));
await indexer.untilLogged("index ready");
const pool = await forFile(connect(service.database.apiUrl, 1));
const patient = await forFile(new pg.Pool({ connectionString: service.database.apiUrl, max: 1 }));
const activity = createActivityIndex(pool, { viewsSchema: "live" });
const isIndexed = async () =>
  (await (await fetch(`${service.url}/verify?wallet=${PAY_TO}`)).text()).includes('"available":true');
if (!(await waitUntil(isIndexed, 45_000))) throw new Error("The index does not answer.");

async function buy(path: string, price: bigint, body: unknown): Promise<Answer> {
  const signed = await signPayment(agent, { value: price });
  const answer = await post(`${service.url}${path}`, v2(signed), body === null ? null : JSON.stringify(body));
  expect({ status: answer.status, text: answer.text.slice(0, 400) }).toMatchObject({ status: 200 });
  return answer;
}

const score = (wallet: string) => buy("/score", PRICES.score, { wallet });

describe("POST /score", () => {
  test("The score of a payee with seller exams lists the newest one among its escrow outcomes, as a fact without points", async () => {
    const merchant = (await newPayer(chain, 0n)).address.toLowerCase() as `0x${string}`;
    const before = await score(merchant);
    expect([before.headers.get("link"), before.text.includes("seller.example")]).toEqual([null, false]);
    const payment = { ...sampleOrder().payment, payer: merchant };
    const again = { ...sampleOrder().payment, payer: merchant };
    const older = sampleOrder({ payTo: merchant, payment, url: "https://seller.example/older" });
    const order = sampleOrder({ payTo: merchant, payment: again });
    await storeExam(patient, older, sampleResult({ endedAt: new Date(Date.now() - 60_000) }));
    await storeExam(patient, order, sampleResult({ endedAt: new Date() }));
    const { body, text, headers } = await score(merchant);
    expect(headers.get("link")).toBe(
      `<${service.url}/payee/${merchant}>; rel="related"; title="Exams of the wallet as a seller"`,
    );
    const page = { url: `${service.url}/cert/${order.id}` };
    const exam = { ...page, origin: "https://seller.example", result: "pass", level: "full", control: "file" };
    expect(body).toMatchObject({ score: 0, evidence: [page], inputs: { seller_exams: [{ id: order.id, ...exam }] } });
    expect((body as unknown as ScoreDocument).components.escrow_outcomes).toMatchObject({
      points: 0,
      facts: [{ kind: "seller_exam", counts: false, fresh: true, ...exam }],
    });
    expect(await replayScores(text)).toMatchObject([{ same: true }]);
  });

  test("A score bought with a stock client has all of its facts and replays to the same value offline", async () => {
    const client = new x402Client().register("eip155:8453", new ExactEvmScheme(agent));
    const answer = await wrapFetchWithPayment(fetch, client)(`${service.url}/score`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ wallet: agent.address }),
    });
    const text = await answer.text();
    expect({ status: answer.status, ...JSON.parse(text) }).toMatchObject({
      status: 200,
      wallet: agent.address.toLowerCase(),
      score: 0,
      tier: "unrated",
      score_version: 1,
    });
    expect(await replayScores(text)).toMatchObject([{ same: true }]);
  });

  test("A score names the certificate that a point comes from", async () => {
    const bought = await buy("/test/suite", PRICES.suite, null);
    const { body, text } = await score(agent.address);
    expect(body).toMatchObject({ score: 30, tier: "D", evidence: [{ url: bought.body.cert_url }] });
    expect(body.components).toMatchObject({
      payment_capability: { points: 30, facts: [{ counts: true, url: bought.body.cert_url }] },
    });
    expect(await replayScores(text)).toMatchObject([{ same: true }]);
  });

  test("The paid_score link of a verification record, called as given, sells the score", async () => {
    const wallet = agent.address.toLowerCase();
    const { body: record } = await send(`${service.url}/verify?wallet=${wallet}`);
    const { method, url } = record.paid_score as { readonly method: string; readonly url: string };
    const unpaid = await send(url, { method });
    expect([unpaid.status, unpaid.body.accepts]).toMatchObject([402, [{ maxAmountRequired: String(PRICES.score) }]]);
    const terms = JSON.parse(Buffer.from(unpaid.headers.get("payment-required") ?? "", "base64").toString());
    expect(terms).toMatchObject({
      accepts: [{ scheme: "exact", network: "eip155:8453", amount: String(PRICES.score) }],
    });
    const client = new x402Client().register("eip155:8453", new ExactEvmScheme(agent));
    const paid = await wrapFetchWithPayment(fetch, client)(url, { method });
    expect([paid.status, await paid.json()]).toMatchObject([200, { wallet, score: expect.any(Number) }]);
  });

  test("A batch has the same records as single scores, in the requested order, at one block", async () => {
    const others = await Promise.all(Array.from({ length: 24 }, () => newPayer(chain, 0n)));
    const wallets = [...others.map(({ address }) => address), agent.address];
    const { text } = await buy("/score/batch", PRICES.scores, { wallets });
    const records: { wallet: string; as_of_block: number; score: number }[] = JSON.parse(text);
    expect(records.map(({ wallet }) => wallet)).toEqual(wallets.map((wallet) => wallet.toLowerCase()));
    expect(new Set(records.map((record) => record.as_of_block)).size).toBe(1);
    expect(records.at(-1)?.score).toBe(30);
    expect((await replayScores(text)).every(({ same }) => same)).toBe(true);
  });
});

describe("escrow sale", () => {
  const merchant = newMerchant();
  const [released, refused, failed] = [
    { status: 200, body: '{"goods":1}' },
    { status: 422, body: '{"error":"no such thing"}' },
    { status: 500, body: '{"error":"we are sorry"}' },
  ];

  /** Sells for 1 USDC, delivers, and waits until the index has the outcome. Returns the buyer. */
  async function sell(response: { readonly status: number; readonly body: string }) {
    const held = await hold({ chain, escrow }, merchant.address);
    await deliver(service, merchant, { id: held.id, ...response });
    const ends = response === released ? "released" : "refunded";
    await eventually(() => statusOf({ chain, escrow }, held), ends as "released" | "refunded");
    const head = Number(await chain.client.getBlockNumber());
    const isRead = async () => Number((await activity.position())?.block) >= head;
    if (!(await waitUntil(isRead, 45_000))) throw new Error(`The index did not reach block ${head}.`);
    return held.info.payer;
  }

  const read = async (wallet: string) => {
    const { text } = await score(wallet);
    expect(await replayScores(text)).toMatchObject([{ same: true }]);
    return JSON.parse(text) as ScoreDocument;
  };

  test("A released sale counts as the buyer's payment to the merchant and in the merchant's record", async () => {
    const buyer = await sell(released);
    const { payments, payees } = (await read(buyer)).inputs.chain;
    expect(payments.days).toMatchObject([{ count: 1, value: "1000000" }]);
    expect(payees).toMatchObject([{ payee: merchant.address.toLowerCase(), value: "1000000", returned: "0" }]);
    const { components } = await read(merchant.address);
    expect(components.escrow_outcomes).toMatchObject({ points: 1, facts: [{ buyers: 1, days: 1 }] });
  });

  test("Input that the merchant rejected does not count in its record, and its buyer's payment is not counted", async () => {
    const buyer = await sell(refused);
    expect((await read(merchant.address)).inputs.chain.escrow).toMatchObject({
      buyers: 1,
      refunded_buyers: 0,
      refund_days: 0,
    });
    const { components } = await read(buyer);
    expect(components.independent_counterparties.facts).toMatchObject([{ reason: "reciprocal_flow" }]);
  });

  test("A failed sale counts in the merchant's record", async () => {
    await sell(failed);
    const { escrow: record } = (await read(merchant.address)).inputs.chain;
    expect(record).toMatchObject({ buyers: 1, release_days: 1, refunded_buyers: 1, refund_days: 1 });
  });
});

describe("POST /arbiter/verify/scored", () => {
  const claim = {
    category: "payload-hash",
    conditions: {
      payload_text: "hello",
      expected_sha256: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
    },
  };
  const stranger = "0x00000000000000000000000000000000000000ab";
  const parties = () => ({ payer: agent.address, payee: stranger });
  const tiers = () => ({
    payer: { wallet: agent.address.toLowerCase(), score: 30, tier: "D" },
    payee: { wallet: stranger, score: 0, tier: "unrated" },
  });

  test("The signed document has both parties' tiers, with the same verdict and facts as a plain one", async () => {
    const scored = await buy("/arbiter/verify/scored", PRICES.scoredVerdict, { ...claim, parties: parties() });
    expect(scored.body).toMatchObject({ verdict: "release", parties: tiers() });
    const keys = await parseKeySet(await (await fetch(`${service.url}/.well-known/jwks.json`)).text());
    expect(await verifyDocument(scored.text, { keys, issuer: service.url })).toMatchObject({ valid: true });
    const plain = await buy("/arbiter/verify", PRICES.verdict, { ...claim, parties: parties() });
    for (const member of ["verdict", "facts", "conditions_sha256"])
      expect(plain.body[member]).toEqual(scored.body[member]);
    const page = await (await fetch(String(scored.body.verdict_url), { headers: { accept: "text/html" } })).text();
    expect(page).toMatch(/risk tier D \(30 of 100\), not used to decide/);
  });

  test("A scored verdict needs parties, unless the deal is one of the service's escrow payments", async () => {
    const signed = await signPayment(agent, { value: PRICES.scoredVerdict, to: PAY_TO });
    const path = `${service.url}/arbiter/verify/scored`;
    const refused = await post(path, v2(signed), JSON.stringify({ ...claim, deal_ref: randomUUID() }));
    expectProblem(refused, 422, "unacceptable");
    expect(refused.body.errors).toMatchObject([{ path: "parties", rule: 7 }]);
    const merchant = newMerchant();
    const held = await hold({ chain, escrow }, merchant.address);
    const taken = await post(path, v2(signed), JSON.stringify({ ...claim, deal_ref: held.id }));
    expect({ status: taken.status, ...taken.body }).toMatchObject({
      status: 200,
      deal_ref: held.id,
      parties: {
        payer: { wallet: held.info.payer, tier: "unrated" },
        payee: { wallet: merchant.address.toLowerCase(), tier: "unrated" },
      },
    });
  });

  test("While the index is down, a plain verdict is sold and a scored one is not", async () => {
    indexer.closeInput();
    await indexer.ended;
    const reader = await newPayer(chain);
    const body = JSON.stringify({ ...claim, parties: parties() });
    const path = `${service.url}/arbiter/verify`;
    // The views remain after the indexer stops, and are stale one minute later. A service with a later clock detects
    // that immediately.
    const later = await startService({
      chain,
      database: service.database,
      now: () => new Date(Date.now() + 61_000),
    });
    const signed = await signPayment(reader, {
      value: PRICES.scoredVerdict,
      validBefore: BigInt(Math.floor(Date.now() / 1000) + 600),
    });
    const answer = await post(`${later.url}/arbiter/verify/scored`, v2(signed), body);
    expectProblem(answer, 503, "not_available");
    await nothingCharged(chain, reader);
    await later.stop();
    const plain = await signPayment(reader);
    expect((await post(path, v2(plain), body)).status).toBe(200);
    await chargedOnce(chain, plain);
  });
});
