import { Hono } from "hono";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { payable } from "../../../api/payments/payable.ts";
import { createOfferReceipt } from "../../../api/payments/receipt.ts";
import { EXACT } from "../../../api/payments/schemes/exact.ts";
import { type PaidRoute, paidRoute, type RouteTerms } from "../../../api/platform/http/route.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import {
  expectNoSignatureAnywhere,
  expectPaymentRequired,
  expectProblem,
} from "../../support/payments/expectations.ts";
import { chargedOnce, settlements } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { type Answer, post, send, v2 } from "../../support/payments/requests.ts";
import { highS, newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { binary } from "../../support/service/database.ts";
import { PAY_TO } from "../../support/service/environment.ts";
import { startService } from "../../support/service/service.ts";

let ahead = 0;
const now = () => new Date(Date.now() + ahead);

const chain = await forFile(startTestChain({ roomMinutes: 5 }));
const service = await forFile(startService({ chain, now }));
const TERMS: RouteTerms = { networks: [chain.network.id], price: PRICES.basic };
const basic = () => `${service.url}/test/basic`;
let payer = await newPayer(chain);

const settledHeader = (answer: Answer, name = "payment-response") =>
  JSON.parse(Buffer.from(answer.headers.get(name) ?? "", "base64").toString()) as Record<string, unknown>;
const isReplay = (answer: Answer) => answer.headers.get("x-idempotent-replay") === "true";

/** Buys once, and returns the payment with its response. */
async function paid(
  headersOf: (signed: Signed) => Record<string, string> = v2,
): Promise<{ signed: Signed; first: Answer }> {
  payer = await newPayer(chain);
  const signed = await signPayment(payer);
  const first = await post(basic(), headersOf(signed));
  expect(first.status).toBe(200);
  return { signed, first };
}

const isKnown = ({ authorization }: Signed): Promise<boolean> =>
  withClient(service.database.ownerUrl, async (client) => {
    const nonce = binary(authorization.nonce);
    return (await client.query("SELECT 1 FROM payment WHERE nonce = $1", [nonce])).rowCount === 1;
  });

function expectReplay(answer: Answer, first: Answer): void {
  expect(answer.status).toBe(200);
  expect(answer.text).toBe(first.text);
  expect(isReplay(answer)).toBe(true);
  expect(settledHeader(answer)).toEqual(settledHeader(first));
}

describe("repeated payment", () => {
  test("A payment sent 20 times concurrently is charged once, and 19 of 20 responses are replays", async () => {
    const signed = await signPayment(payer);
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(basic(), v2(signed))));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(answers.filter(isReplay)).toHaveLength(19);
    await chargedOnce(chain, signed);
    const [settlement] = await settlements(chain, payer.address);
    const wallet = payer.address.toLowerCase();
    for (const answer of answers) {
      expect(answer.body).toMatchObject({ wallet, settlement: { transaction: settlement?.transaction } });
      expect(settledHeader(answer)).toEqual({
        success: true,
        transaction: settlement?.transaction,
        network: "eip155:8453",
        payer: wallet,
        extensions: settledHeader(answers[0] as Answer).extensions,
      });
    }
    const { body } = await send(`${service.url}/verify?wallet=${wallet}`);
    expect(body.certs).toMatchObject([{ id: answers[0]?.body.id }]);
  });

  test("A payment sent to two processes at the same time is charged once, whichever responds first", async () => {
    const { database, config } = service;
    const other = await startService({
      chain,
      now,
      database,
      config: { sealingKey: config.sealingKey, baseUrl: service.url },
    });
    const urls = [service.config.port, other.config.port].map((port) => `http://localhost:${port}/test/basic`);
    for (let round = 0; round < 4; round++) {
      const signed = await signPayment(await newPayer(chain));
      const answers = await Promise.all([0, 1, 2, 3, 4, 5].map((i) => post(urls[i % 2] ?? "", v2(signed))));
      expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(200));
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
      expect(answers.filter(isReplay)).toHaveLength(5);
      await chargedOnce(chain, signed);
    }
    await other.stop();
  });

  test("A payment whose client hung up is completed and replayed when the client returns", async () => {
    const fresh = await newPayer(chain);
    const signed = await signPayment(fresh);
    const client = new AbortController();
    const sent = send(basic(), { method: "POST", headers: v2(signed), signal: client.signal }).catch(() => undefined);
    await expect.poll(() => isKnown(signed), { interval: 5 }).toBe(true);
    client.abort();
    await sent;
    await service.gate.drain();
    await chargedOnce(chain, signed);
    const answer = await post(basic(), v2(signed));
    expect([answer.status, isReplay(answer)]).toEqual([200, true]);
  });

  test("A payment is replayed even if its links cannot be read", async () => {
    const { signed, first } = await paid();
    const alone = offering({ hooks: { links: () => Promise.reject(new Error("the database is slow")) } });
    const replay = await alone.request("/test/basic", { method: "POST", headers: v2(signed) });
    expect([replay.status, await replay.text(), replay.headers.get("link")]).toEqual([200, first.text, null]);
  });

  test("A payment is replayed after the price has changed", async () => {
    const { signed, first } = await paid();
    const dearer = offering({ terms: { ...TERMS, price: 2n * TERMS.price } });
    const replay = await dearer.request("/test/basic", { method: "POST", headers: v2(signed) });
    expect(replay.status).toBe(200);
    expect(await replay.text()).toBe(first.text);
    expect(replay.headers.get("x-idempotent-replay")).toBe("true");
    const fresh = await dearer.request("/test/basic", { method: "POST", headers: v2(await signPayment(payer)) });
    expect(fresh.status).toBe(402);
    await chargedOnce(chain, signed);
  });
});

/** The same gate and journal behind a changed route, for example after the operator raised the price. */
function offering(changed: Partial<Pick<PaidRoute, "terms" | "hooks">>): Hono {
  const route = paidRoute({
    id: "test.basic",
    method: "POST",
    path: "/test/basic",
    terms: TERMS,
    summary: "",
    description: "",
    input: z.unknown(),
    output: {},
    example: { input: {}, output: {} },
    sell: () => Promise.reject(new Error("a replay sells nothing")),
    ...changed,
  });
  const { gate, config } = service;
  return new Hono().post(
    route.path,
    payable(route, {
      gate,
      schemes: new Map([[EXACT.id, EXACT]]),
      usdc: { closed: () => null },
      payTo: PAY_TO,
      baseUrl: config.baseUrl,
      offerReceipt: createOfferReceipt(async (payload) => payload),
      now: () => new Date(),
      peers: { clientOf: () => "somebody" },
      log: { warn: () => undefined },
    }),
  );
}

describe("payment that has been made", () => {
  test("A settled payment sent with a different body is a 409 without another charge", async () => {
    const { signed } = await paid();
    const answer = await post(basic(), v2(signed), '{"a":1}');
    expectProblem(answer, 409, "payment_conflict");
    expect(answer.body.detail).toMatch(/Nothing was charged/);
    await chargedOnce(chain, signed);
  });

  test("Other signed terms under the same nonce buy nothing", async () => {
    const { signed } = await paid();
    const { nonce } = signed.authorization;
    const other = await signPayment(payer, { nonce, value: PRICES.suite });
    expectProblem(await post(`${service.url}/test/suite`, v2(other)), 409, "payment_conflict");
    await chargedOnce(chain, signed);
  });

  const forgeries: [string, (signed: Signed) => Promise<Signed>][] = [
    [
      "another account's signature",
      async (s) => ({ ...s, signature: (await signPayment(devAccount(9), s.authorization)).signature }),
    ],
    ["the high-s copy of its signature", async (s) => ({ ...s, signature: highS(s.signature) })],
    ["another amount over its signature", async (s) => ({ ...s, authorization: { ...s.authorization, value: 1n } })],
  ];

  test.each(forgeries)("A header with %s is a 400 and does not return the result", async (_, forge) => {
    const { signed, first } = await paid();
    const answer = await post(basic(), v2(await forge(signed)));
    expectProblem(answer, 400, "malformed_request");
    expect(isReplay(answer)).toBe(false);
    expect(answer.text).not.toContain(String(first.body.id));
    expectReplay(await post(basic(), v2(signed)), first);
    await chargedOnce(chain, signed);
  });
});

// The chain's clock never goes back, so the tests after this one run five minutes later.
test("A payment is replayed after its window has ended", async () => {
  const { signed, first } = await paid();
  const late = await signPayment(payer);
  await chain.increaseTime(300);
  ahead = 300_000;
  expectReplay(await post(basic(), v2(signed)), first);
  expect(expectPaymentRequired(await post(basic(), v2(late)))).toMatch(/expired/);
  await chargedOnce(chain, signed);
});

test("No response, log line, or database row contains a plain signature", () => expectNoSignatureAnywhere(service));
