import { randomUUID } from "node:crypto";
import type { LocalAccount } from "viem";
import { beforeEach, describe, expect, test } from "vitest";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { expectPaymentRequired } from "../../support/payments/expectations.ts";
import { chargedOnce, settlements } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { startService } from "../../support/service/service.ts";

const DEAD = "0x000000000000000000000000000000000000dead";

let payer: LocalAccount;
let id: string;

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));
const basic = () => `${service.url}/test/basic`;

beforeEach(async () => {
  payer = await newPayer(chain);
  id = randomUUID();
});

describe("A payment with a payment identifier", () => {
  test("A fresh signature under the same identifier replays the purchase and is never submitted", async () => {
    const signed = await signPayment(payer);
    const first = await post(basic(), v2(signed, { id }));
    const fresh = await signPayment(payer);
    const again = await post(basic(), v2(fresh, { id }));
    expect([first.status, again.status, again.text]).toEqual([200, 200, first.text]);
    expect(again.headers.get("x-idempotent-replay")).toBe("true");
    expect(again.headers.get("payment-response")).toBe(first.headers.get("payment-response"));
    await chargedOnce(chain, signed);
  });

  test("An authorization for another payee gets 402 instead of the replay, and the original authorization still gets it", async () => {
    const signed = await signPayment(payer);
    const first = await post(basic(), v2(signed, { id }));
    const answer = await post(basic(), v2(await signPayment(payer, { to: DEAD }), { id }));
    expect(expectPaymentRequired(answer)).toMatch(/it must pay/);
    expect(answer.text).not.toContain(String(first.body.id));
    expect((await post(basic(), v2(signed, { id }))).text).toBe(first.text);
    await chargedOnce(chain, signed);
  });

  test("Ten concurrent requests with ten signatures under one identifier are one purchase", async () => {
    const all = await Promise.all(Array.from({ length: 10 }, () => signPayment(payer)));
    const answers = await Promise.all(all.map((signed) => post(basic(), v2(signed, { id }))));
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(answers.filter(({ headers }) => headers.has("x-idempotent-replay"))).toHaveLength(9);
    expect(await settlements(chain, payer.address)).toHaveLength(1);
  });

  test("Two payers may use the same identifier", async () => {
    const stranger = await newPayer(chain);
    const [mine, theirs] = [await signPayment(payer), await signPayment(stranger)];
    const first = await post(basic(), v2(mine, { id }));
    const second = await post(`${service.url}/test/basic?other=1`, v2(theirs, { id }));
    expect([first.status, second.status]).toEqual([200, 200]);
    expect(second.headers.has("x-idempotent-replay")).toBe(false);
    expect(second.body.wallet).toBe(stranger.address.toLowerCase());
    await chargedOnce(chain, mine);
    await chargedOnce(chain, theirs);
  });
});

test("A refused payment frees its identifier for a new payment", async () => {
  const poor = await newPayer(chain, 0n);
  expect(expectPaymentRequired(await post(basic(), v2(await signPayment(poor), { id })))).toMatch(/balance/);
  await chain.fund(poor.address, PRICES.basic);
  const signed = await signPayment(poor);
  expect((await post(basic(), v2(signed, { id }))).status).toBe(200);
  await chargedOnce(chain, signed);
});
