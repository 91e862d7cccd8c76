import { randomUUID } from "node:crypto";
import type { LocalAccount } from "viem";
import { describe, expect, test } from "vitest";
import { createJournal } from "../../../api/payments/journal/journal-store.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { createSeal } from "../../../api/platform/db/seal.ts";
import { eachNetwork } from "../../../api/platform/networks.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { startFaultyNode, unreachable } from "../../support/chain/nodes.ts";
import { forFile } from "../../support/for-file.ts";
import { expectPaymentRequired, expectProblem } from "../../support/payments/expectations.ts";
import { startFacilitator } from "../../support/payments/facilitator.ts";
import { apply, newPayment, WRITES } from "../../support/payments/journal-rows.ts";
import { broadcast, chargedOnce, settlements } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { post, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { binary } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

/** The number of payments that one payer may have in flight, which its balance must cover together. */

const MOST = 16;

const chain = await forFile(startTestChain());
const node = await forFile(startFaultyNode(chain));
const facilitator = await forFile(startFacilitator(chain));
const rpcUrls = eachNetwork(() => node.url);
const config = { rpcUrls, facilitator: { remote: facilitator.url } };
const service = await forFile(startService({ chain, jobs: false, config, patienceMs: 1_500 }));

const journal = createJournal(await forFile(connect(service.database.apiUrl, 2)), createSeal(Buffer.alloc(32, 3)));

const pay = (signed: Signed, id?: string) => post(`${service.url}/test/basic`, v2(signed, id ? { id } : {}));
const signed = (payer: LocalAccount, count: number) =>
  Promise.all(Array.from({ length: count }, () => signPayment(payer)));

/** Makes the facilitator accept the payment and do nothing with it. */
const keep = (one: Signed) => facilitator.treat(one, (_, answer) => answer.writeHead(200).end("{}"));

const rowsOf = ({ address }: LocalAccount) =>
  withClient(service.database.ownerUrl, async (client) => {
    const text = "SELECT state, reason FROM payment WHERE payer = $1 ORDER BY admission_seq";
    return (await client.query<object>(text, [Buffer.from(address.slice(2), "hex")])).rows;
  });

describe("A payer's payments in flight", () => {
  test("A payer has at most 16 payments in flight, and the others get 503, are not stored, and are accepted later", async () => {
    const payer = await newPayer(chain);
    const all = await signed(payer, MOST + 9);
    for (const one of all) keep(one);
    const answers = await Promise.all(all.map((one) => pay(one)));
    for (const answer of answers) expectProblem(answer, 503, "payment_pending");
    const turnedAway = all.filter((_, index) =>
      /maximum number of payments in flight: 16/.test(String(answers[index]?.body.detail)),
    );
    expect(turnedAway).toHaveLength(9);
    const crowded = answers.find(({ body }) => /maximum number of payments in flight: 16/.test(String(body.detail)));
    expect(crowded?.body.detail).toMatch(/not stored or charged\. Do not sign again; send the same header again/);
    expect(crowded?.headers.get("retry-after")).toBe("2");
    expect(await rowsOf(payer)).toEqual(Array(MOST).fill({ state: "settling", reason: null }));
    const [taken] = all.filter((one) => !turnedAway.includes(one));
    const [waiting] = turnedAway;
    if (taken === undefined || waiting === undefined) throw new Error("no payment waits");
    await broadcast(chain, taken);
    expect((await pay(taken)).status).toBe(200);
    await broadcast(chain, waiting);
    expect((await pay(waiting)).status).toBe(200);
  });

  test("Payments of one payer are admitted one at a time across processes", async () => {
    const payment = newPayment();
    const WAITING = `SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
    await withClient(service.database.ownerUrl, async (elsewhere) => {
      await elsewhere.query("BEGIN");
      await elsewhere.query("SELECT admit_payment($1, $2, 3)", [binary(payment.key.payer), MOST]);
      const entering = journal.insert(payment, randomUUID());
      await expect.poll(async () => (await elsewhere.query(WAITING)).rowCount).toBe(1);
      expect(await journal.insert(newPayment(), randomUUID())).toBe(1);
      await elsewhere.query("COMMIT");
      expect(await entering).toBe(1);
    });
  });

  test("An abandoned payment does not count until it is taken again, and then it is the last", async () => {
    const { key } = newPayment();
    const [first, second] = [newPayment({ payer: key.payer }), newPayment({ payer: key.payer })];
    const token = randomUUID();
    for (const one of [first, second]) await journal.insert(one, token);
    const ahead = async (one: typeof first) => (await journal.inFlightBefore(one.key)).map(({ nonce }) => nonce);
    expect([await ahead(first), await ahead(second)]).toEqual([[], [first.key.nonce]]);
    await journal.release(first.key, token, false);
    expect(await ahead(second)).toEqual([]);
    await journal.take(first.key, "received", token);
    expect([await ahead(first), await ahead(second)]).toEqual([[second.key.nonce], []]);
    // Payments on another chain are counted separately.
    const abroad = newPayment();
    const there = { ...abroad, key: { ...abroad.key, payer: key.payer, network: "eip155:84532" as const } };
    await journal.insert(there, token);
    expect(await ahead(there)).toEqual([]);
  });

  test("After a failure on the chain, a payer may have only as many in flight as may still fail", async () => {
    const { payer } = newPayment().key;
    const enter = (payment = newPayment({ payer }), token = randomUUID()) => journal.insert(payment, token);
    const [failing, token] = [newPayment({ payer }), randomUUID()];
    await enter(failing, token);
    for (const change of [WRITES.leave, { ...WRITES.expire, reason: "reverted" }] as const)
      expect(await apply(journal, { ...failing, token }, { change })).toBe(1);
    expect([await enter(), await enter(), await enter()]).toEqual([1, 1, "crowded"]);
  });
});

describe("The balance for all payments in flight", () => {
  test("If two payments exceed the balance, one is accepted and the other is refused with the reason", async () => {
    const payer = await newPayer(chain, 400_000n);
    const both = await signed(payer, 2);
    for (const one of both) keep(one);
    const answers = await Promise.all(both.map((one) => pay(one)));
    const at = answers.findIndex(({ status }) => status === 402);
    const [refused, taken] = [both[at], both[1 - at]];
    if (refused === undefined || taken === undefined) throw new Error("not one of two is refused");
    expect(expectPaymentRequired(answers[at] as (typeof answers)[number])).toMatch(
      /balance of 0\.40 USDC does not cover this payment of 0\.25 USDC and its 1 others in flight \(0\.25 USDC\)/,
    );
    expectProblem(answers[1 - at] as (typeof answers)[number], 503, "payment_pending");
    await broadcast(chain, taken);
    expect((await pay(taken)).status).toBe(200);
    expectPaymentRequired(await pay(refused));
    await chargedOnce(chain, taken);
  });

  test("A payment that has settled but whose row does not show it is not counted twice", async () => {
    const payer = await newPayer(chain, 2n * PRICES.basic);
    const [first, second] = await signed(payer, 2);
    if (first === undefined || second === undefined) throw new Error("nothing signed");
    keep(first);
    expectProblem(await pay(first), 503, "payment_pending");
    await broadcast(chain, first);
    expect((await pay(second)).status).toBe(200);
    expect((await pay(first)).status).toBe(200);
    expect(await settlements(chain, payer.address)).toHaveLength(2);
  });
});

describe("A payment identifier", () => {
  test("An identifier is free again if its payment was abandoned before submission", async () => {
    const payer = await newPayer(chain);
    const [first, second] = await signed(payer, 2);
    if (first === undefined || second === undefined) throw new Error("nothing signed");
    const id = randomUUID();
    // The checks still get the head, but simulations fail.
    node.become(async (call, pass) => (call.method === "eth_call" ? unreachable(call, pass) : pass(call)));
    expectProblem(await pay(first, id), 503, "payment_pending");
    node.become(null);
    expect(await rowsOf(payer)).toEqual([{ state: "received", reason: null }]);
    const answer = await pay(second, id);
    expect(answer.status).toBe(200);
    const late = await pay(first, id);
    expect([late.text, late.headers.get("x-idempotent-replay")]).toEqual([answer.text, "true"]);
    expect(await rowsOf(payer)).toEqual([{ state: "fulfilled", reason: null }]);
    await chargedOnce(chain, second);
  });
});
