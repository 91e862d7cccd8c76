import { describe, expect, test } from "vitest";
import { CONTEST_ROOM_SECONDS } from "../../../packages/escrow/src/contest-terms.ts";
import { parseKeySet, verifyDocument } from "../../../packages/verifier/src/index.ts";
import {
  type ContestableHold,
  type Custody,
  contest,
  deliverWithWindow,
  HAIKU,
  holdWithWindow,
  startContestScene,
  untilOf,
} from "../../support/escrow/contest.ts";
import { newMerchant, requestedOutcomes, statusOf } from "../../support/escrow/contract.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { send } from "../../support/payments/requests.ts";

const scene = await forFile(startContestScene());
const { service, at, pages, site, pass, now, mineAt } = scene;
const merchant = newMerchant();

const newHold = (terms: Parameters<typeof holdWithWindow>[2] = {}, custody: Custody = "escrow") =>
  holdWithWindow(at[custody], merchant, terms);
const status = (held: ContestableHold, custody: Custody = "escrow") => statusOf(at[custody], held);
const TOO_SHORT = { expect: { min_bytes: 1_000 } };
const LONG_ENOUGH = { expect: { min_bytes: 10, expect_contains: "silent", expect_status: 200 } };
const EXPECT = { category: "expect" };

async function delivered(held: ContestableHold): Promise<number> {
  const { status: answered, body } = await deliverWithWindow(service, merchant, { held });
  expect([answered, body.decision, body.rule, body.status]).toEqual([200, "release", "delivered", "pending"]);
  return untilOf(body);
}

describe.each<Custody>(["escrow", "operator"])("payment of the %s with a contest window", (custody) => {
  test("The payment is released when the window closes and not one second earlier", async () => {
    const held = await newHold({}, custody);
    const until = await delivered(held);
    expect(until - (await now())).toBe(600);
    await mineAt(until - 1);
    await pass();
    expect([await status(held, custody), await requestedOutcomes(at[custody], held)]).toEqual(["held", []]);
    await mineAt(until);
    await pass();
    expect(await status(held, custody)).toBe("released");
  });

  test("A false claim is refunded, and the contract's event has the hash of the verifiable answer", async () => {
    const held = await newHold({ conditions: TOO_SHORT }, custody);
    await delivered(held);
    const first = await contest(service, held, EXPECT);
    expect(first).toMatchObject({ status: 200, body: { contest: { decision: "refund", rule: "claim_false" } } });
    const { answer } = first.body as { answer: { facts: unknown } };
    expect(answer.facts).toMatchObject([
      { condition: "status", result: "true" },
      { condition: "min_bytes", expected: 1_000, observed: 30, result: "false", reason: "mismatch" },
    ]);
    const keys = await parseKeySet((await send(`${service.url}/.well-known/jwks.json`)).text);
    expect(await verifyDocument(JSON.stringify(answer), { keys, issuer: service.url })).toMatchObject({ valid: true });
    await pass();
    expect(await status(held, custody)).toBe("refunded");
    const { record } = first.body.contest as { record: string };
    expect(await requestedOutcomes(at[custody], held)).toMatchObject([{ decision: "refund", event: { record } }]);
    expect(await scene.chain.usdcBalance(held.buyer.address)).toBe(10_000_000n);
    // A merchant that forwards again gets the outcome.
    expect((await deliverWithWindow(service, merchant, { held })).body).toMatchObject({
      decision: "refund",
      rule: "claim_false",
      status: "refunded",
      record,
    });
  });

  test("If every condition is true, the payment is released immediately", async () => {
    const held = await newHold({ conditions: LONG_ENOUGH }, custody);
    await delivered(held);
    expect((await contest(service, held, EXPECT)).body.contest).toMatchObject({
      decision: "release",
      rule: "claim_true",
    });
    await pass();
    expect(await status(held, custody)).toBe("released");
  });
});

describe("contest on the ground http-delivery", () => {
  const HTTP = { category: "http-delivery" };
  const about = (path: string, more: object = {}) => ({ "http-delivery": { url: `${site.url}${path}`, ...more } });

  const UNREACHABLE = { "http-delivery": { url: "http://nowhere.test-of-ours.example/" } };

  test.each([
    { page: "is there", conditions: about("/there", { expect_contains: "pond" }), ends: ["claim_true", "released"] },
    {
      page: "shows something else",
      conditions: about("/there", { expect_contains: "frog" }),
      ends: ["claim_false", "refunded"],
    },
    { page: "is gone", conditions: about("/gone"), ends: ["claim_false", "refunded"] },
    { page: "cannot be reached", conditions: UNREACHABLE, ends: ["claim_unknown", "released"] },
  ])("A page that $page ends the payment as it should", async ({ conditions, ends: [rule, ending] }) => {
    pages.set("/there", "An old silent pond");
    const held = await newHold({ conditions });
    await delivered(held);
    expect((await contest(service, held, HTTP)).body.contest).toMatchObject({ rule });
    await pass();
    expect(await status(held)).toBe(ending);
  });

  test("A URL that the arbiter does not fetch is rejected at the delivery, and nothing is decided", async () => {
    const held = await newHold({ conditions: { "http-delivery": { url: "http://169.254.169.254/latest" } } });
    const answer = await deliverWithWindow(service, merchant, { held });
    expectProblem(answer, 422, "unacceptable");
    expect(answer.body.errors).toMatchObject([{ path: "contest.conditions.http-delivery.url" }]);
    expect(await status(held)).toBe("held");
  });
});

test("A contest about conditions that the offer lacks is answered, and the sale is released", async () => {
  const held = await newHold();
  await delivered(held);
  expect((await contest(service, held, EXPECT)).body.contest).toMatchObject({ rule: "no_ground", decision: "release" });
  await pass();
  expect(await status(held)).toBe("released");
});

describe("merchant against the contest window", () => {
  test.each<[string, object]>([
    ["a different window", { seconds: 60 }],
    ["different conditions", { conditions: {} }],
    ["invented conditions", { conditions: { expect: { min_bytes: 1 } } }],
    ["a different salt nonce", { salt_nonce: `0x${"11".repeat(32)}` }],
  ])("A delivery with %s is rejected", async (_, change) => {
    const held = await newHold({ conditions: TOO_SHORT });
    const claimed = { ...held, contest: { ...held.contest, ...change } };
    expectProblem(await deliverWithWindow(service, merchant, { held: claimed }), 422, "unacceptable");
    expect(await status(held)).toBe("held");
  });

  test("A second delivery with another body is a conflict", async () => {
    const held = await newHold();
    await delivered(held);
    const sent = { ...HAIKU, body: '{"haiku":"another"}' };
    expectProblem(await deliverWithWindow(service, merchant, { held, sent }), 409, "payment_conflict");
    await delivered(held);
  });

  test("A late delivery does not shorten the window, which must end before minute 30", async () => {
    const [fits, late] = [await newHold({ seconds: 1_200 }), await newHold({ seconds: 1_200 })];
    const { payment } = await refundable(fits);
    await mineAt(payment - CONTEST_ROOM_SECONDS - 1_200);
    expect(await delivered(fits)).toBe(payment - CONTEST_ROOM_SECONDS);
    await mineAt((await refundable(late)).payment - CONTEST_ROOM_SECONDS - 1_200 + 1);
    expectProblem(await deliverWithWindow(service, merchant, { held: late }), 409, "escrow_over");
    expect(await status(late)).toBe("held");
  });

  test("A bad delivery is refunded immediately and cannot be contested", async () => {
    const held = await newHold();
    const { body } = await deliverWithWindow(service, merchant, { held, sent: { ...HAIKU, body: "" } });
    expect(body).toMatchObject({ decision: "refund", rule: "empty_response" });
    expectProblem(await contest(service, held, EXPECT), 404, "not_found");
    await pass();
    expect(await status(held)).toBe("refunded");
  });
});

/** The time from which anyone may refund a hold of the escrow. */
async function refundable({ transaction }: ContestableHold) {
  const { blockNumber } = await scene.chain.client.getTransactionReceipt({ hash: transaction });
  return { payment: Number((await scene.chain.client.getBlock({ blockNumber })).timestamp) + 1_800 };
}
