import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import type { Hex } from "viem";
import { describe, expect, test } from "vitest";
import { ESCROW_NETWORK } from "../../../api/escrow/payment.ts";
import { escrowAbi } from "../../../contracts/abi.ts";
import { parseKeySet, verifyDocument } from "../../../packages/verifier/src/index.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import {
  deployEscrow,
  FEE_RECIPIENT,
  type Held,
  hold,
  newMerchant,
  requestedOutcomes,
  statusOf,
} from "../../support/escrow/contract.ts";
import {
  type Delivered,
  deliver,
  EMPTY,
  forwarded,
  GOOD,
  JSON_TYPE,
  signDelivery,
  verify,
} from "../../support/escrow/delivery.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { type Answer, send } from "../../support/payments/requests.ts";
import { binary } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

const SOON = { timeout: 15_000, interval: 50 };
const OTHER_ARBITER: Hex = `0x${"b8".repeat(32)}`;

const chain = await forFile(startTestChain());
const escrow = await deployEscrow(chain);
const retired = await deployEscrow(chain, OTHER_ARBITER);
const addresses = [escrow.address, retired.address];
const service = await forFile(startService({ chain, config: { escrowAddresses: addresses } }));
const merchant = newMerchant();

const newHold = (terms: Parameters<typeof hold>[2] = {}, receiver = merchant.address) =>
  hold({ chain, escrow }, receiver, terms);
const status = (held: Held) => statusOf({ chain, escrow }, held);
const ended = (held: Held, wanted: "released" | "refunded") => expect.poll(() => status(held), SOON).toBe(wanted);
const owed = () =>
  chain.client.readContract({ address: escrow.address, abi: escrowAbi, functionName: "owed", args: [FEE_RECIPIENT] });
const rows = ({ id }: Held) =>
  withClient(service.database.ownerUrl, async (client) => {
    const text =
      "SELECT payment FROM escrow_evaluation WHERE payment = $1 UNION ALL SELECT payment FROM escrow_task WHERE payment = $1";
    return (await client.query(text, [binary(id)])).rowCount;
  });

async function nothingMoved(held: Held): Promise<void> {
  expect([await status(held), await rows(held)]).toEqual(["held", 0]);
  expect(await requestedOutcomes({ chain, escrow }, held)).toEqual([]);
}

const RELEASED = ["release", "delivered"] as const;

function expectDecision(answer: Answer, { id }: Held, [decision, rule]: readonly [string, string]): void {
  expect(answer).toMatchObject({ status: 200, body: { payment_id: id, decision, rule } });
  expect(answer.body.record_url).toBe(`${service.url}/escrow/evaluation/${id}`);
}

describe("signed delivery", () => {
  test("A good delivery pays the merchant all but 1%, rounded down, and credits the rest to the fee recipient", async () => {
    const before = await owed();
    const held = await newHold({ maxAmount: 1_000_099n });
    expectDecision(await deliver(service, merchant, { ...held, ...GOOD }), held, RELEASED);
    await ended(held, "released");
    expect(await chain.usdcBalance(merchant.address)).toBe(1_000_099n - 10_000n);
    expect((await owed()) - before).toBe(10_000n);
    expect(await chain.usdcBalance(held.buyer.address)).toBe(10_000_000n - 1_000_099n);
  });

  test("A delivery is accepted at the alias, by terms, by transaction, and with a bare body", async () => {
    const { body } = GOOD;
    const signedFor = async (held: Held) => ({
      signature: await signDelivery(service, merchant, { ...held, headers: {}, body }),
      responseBody: body,
    });
    const [byTerms, byTransaction, byId] = [await newHold(), await newHold(), await newHold()];
    const { maxAmount, salt, ...rest } = byTerms.info;
    const paymentInfo = { ...rest, maxAmount: String(maxAmount), salt: String(salt) };
    const terms = await verify(service, { paymentInfo, ...(await signedFor(byTerms)) });
    expectDecision(terms, byTerms, RELEASED);
    const { transaction } = byTransaction;
    const hash = await verify(service, { transaction, ...(await signedFor(byTransaction)) }, "/verify");
    expectDecision(hash, byTransaction, RELEASED);
    const upper = `0x${byId.id.slice(2).toUpperCase()}`;
    const id = await verify(service, { payment_id: upper, ...(await signedFor(byId)) }, "/verify");
    expectDecision(id, byId, RELEASED);
    await Promise.all([byTerms, byTransaction, byId].map((held) => ended(held, "released")));
  });
});

describe("rejected delivery", () => {
  test("A delivery without a signature, or signed by the buyer or for another payment, is rejected", async () => {
    const [held, other] = [await newHold(), await newHold()];
    const unsigned = await verify(service, { payment_id: held.id, ...forwarded(EMPTY) });
    expectProblem(unsigned, 403, "not_the_merchant");
    expectProblem(await deliver(service, held.buyer, { ...held, ...EMPTY }), 403, "not_the_merchant");
    const signature = await signDelivery(service, merchant, { id: other.id, ...EMPTY });
    const foreign = await verify(service, { payment_id: held.id, ...forwarded(EMPTY), signature });
    expectProblem(foreign, 403, "not_the_merchant");
    await nothingMoved(held);
    await nothingMoved(other);
  });

  test("A body or status other than the signed one is rejected before and after the evaluation", async () => {
    const held = await newHold();
    const signature = await signDelivery(service, merchant, { ...held, ...GOOD });
    const alter = (delivered: Delivered) =>
      verify(service, { payment_id: held.id, ...forwarded(delivered), signature });
    const altered = [EMPTY, { ...GOOD, status: 500 }, { ...GOOD, body: `${GOOD.body} ` }];
    for (const one of altered) expectProblem(await alter(one), 403, "not_the_merchant");
    await nothingMoved(held);
    expectDecision(await alter(GOOD), held, RELEASED);
    for (const one of altered) expectProblem(await alter(one), 403, "not_the_merchant");
    await ended(held, "released");
  });

  test("A payment without a hold, and a hold with another arbiter, is a 404", async () => {
    const id: Hex = `0x${"4d".repeat(32)}`;
    expectProblem(await deliver(service, merchant, { id, ...EMPTY }), 404, "not_found");
    const transaction = (await newHold()).transaction.replace(/^0x../, "0x00");
    const unknown = { transaction, responseBody: "", signature: `0x${"11".repeat(65)}` };
    expectProblem(await verify(service, unknown), 404, "not_found");
    const elsewhere = await hold({ chain, escrow: retired }, merchant.address);
    expectProblem(await deliver(service, merchant, { ...elsewhere, ...EMPTY }), 404, "not_found");
    const named = { ...unknown, transaction: elsewhere.transaction };
    expectProblem(await verify(service, named), 404, "not_found");
    expect([await statusOf({ chain, escrow: retired }, elsewhere), await rows(elsewhere)]).toEqual(["held", 0]);
  });

  test("Terms that leave no time for a release are rejected, because the payment would never end", async () => {
    const now = Number((await chain.client.getBlock()).timestamp);
    const times = { preApprovalExpiry: now + 40, authorizationExpiry: now + 50, refundExpiry: now + 50 };
    const held = await newHold(times);
    const late = await deliver(service, merchant, { ...held, ...GOOD });
    expectProblem(late, 409, "escrow_over");
    expect(late.body.detail).toMatch(/authorizationExpiry/);
    await nothingMoved(held);
  });

  test("A body that is not a forwarded delivery is a 400", async () => {
    for (const body of ["{", "[]", JSON.stringify(forwarded(GOOD))]) {
      const answer = await send(`${service.url}/escrow/verify`, { method: "POST", headers: JSON_TYPE, body });
      expectProblem(answer, 400, "malformed_request");
    }
  });
});

describe("first evaluation of a payment", () => {
  test("A repeat or another delivery by the same merchant gets the first evaluation", async () => {
    const held = await newHold();
    const first = await deliver(service, merchant, { ...held, ...GOOD });
    await ended(held, "released");
    for (const delivered of [GOOD, EMPTY, { ...GOOD, status: 500 }])
      await expect
        .poll(async () => (await deliver(service, merchant, { ...held, ...delivered })).body, SOON)
        .toMatchObject({ ...first.body, status: "released", transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/) });
    expect(await requestedOutcomes({ chain, escrow }, held)).toMatchObject([{ decision: "release", succeeded: true }]);
  });
});

describe("record of an evaluation", () => {
  const SECRET = "the-pond-is-a-secret-b7e1";

  test("The record keeps its signed bytes, its hash is in the event, and it contains no content", async () => {
    const held = await newHold();
    const headers = { ...JSON_TYPE, "set-cookie": SECRET };
    const answer = await deliver(service, merchant, { ...held, headers, body: JSON.stringify({ haiku: SECRET }) });
    const url = String(answer.body.record_url);
    const early = await send(url);
    await ended(held, "released");
    const [outcome] = await requestedOutcomes({ chain, escrow }, held);
    await chain.mine(4);
    const late = await send(url, { headers: { accept: "application/json" } });
    expect([late.text, late.headers.get("content-type")]).toEqual([early.text, "application/json"]);
    const canonical = canonicalize(JSON.parse(early.text)) ?? "";
    const hash = `0x${createHash("sha256").update(canonical).digest("hex")}`;
    expect([hash, hash]).toEqual([answer.body.record, outcome?.event?.record]);
    expect(early.body).toMatchObject({ rule: "delivered", decision: "release", fee: "10000", network: ESCROW_NETWORK });
    expect(early.body).toMatchObject({ payment_id: held.id, hold_transaction: held.transaction });
    expect(early.text).not.toContain(SECRET);
    const page = await send(url, { headers: { accept: "text/html" } });
    expect(page.headers.get("content-type")).toMatch(/^text\/html/);
    expect(page.text).not.toContain(SECRET);
    expect(page.text).toContain(outcome?.hash);
    const kept = await withClient(service.database.ownerUrl, (client) =>
      client.query("SELECT e::text AS row FROM escrow_evaluation e UNION ALL SELECT t::text FROM escrow_task t"),
    );
    expect(JSON.stringify(kept.rows)).not.toContain(SECRET);
  });

  test("The published verifier accepts the record and rejects it with one changed word", async () => {
    const held = await newHold();
    const { body } = await deliver(service, merchant, { ...held, ...EMPTY });
    const { text } = await send(String(body.record_url));
    const keys = await parseKeySet((await send(`${service.url}/.well-known/jwks.json`)).text);
    const report = await verifyDocument(text, { keys, issuer: service.url });
    expect(report).toMatchObject({ valid: true, document: { decision: "refund", rule: "empty_response" } });
    const forged = text.replace('"decision":"refund"', '"decision":"release"');
    expect(await verifyDocument(forged, { keys, issuer: service.url })).toMatchObject({ valid: false });
  });
});
