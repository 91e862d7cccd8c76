import { describe, expect, test } from "vitest";
import {
  challengeOf,
  isSafe,
  type LostOrder,
  orderOf,
  presented,
} from "../../../../api/certificates/retry/lost-order.ts";
import { type Door, isPassed, type Session, UNSERVED } from "../../../../api/certificates/sessions/session.ts";
import { PASSING } from "../../../support/certificates/samples.ts";

const LOST = new Date("2026-11-24T12:00:00.000Z");
const secondsLater = (seconds: number): Date => new Date(LOST.getTime() + seconds * 1000);
const nonce = `0x${"01".repeat(32)}` as const;
const other = `0x${"02".repeat(32)}` as const;

const PAID: LostOrder = {
  way: "unavailable",
  paid: { nonce, transaction: nonce },
  taken: nonce,
  lostAt: LOST,
  sentAgainAt: secondsLater(1),
  askedAt: null,
  secondAt: null,
};

const session: Session = {
  id: PASSING.id,
  product: "retry",
  mode: "test",
  wallet: PASSING.wallet,
  entry: {
    payment: { network: "eip155:8453", asset: PASSING.wallet, payer: PASSING.wallet, nonce },
    version: "v2",
    settlement: PASSING.settlement,
  },
  baitFirst: false,
  decoys: { token: PASSING.wallet, wallet: PASSING.wallet },
  startedAt: secondsLater(-60),
  lapsesAt: secondsLater(3_540),
  served: { token: UNSERVED, wallet: UNSERVED },
  control: { nonce: other, transaction: other, door: "token" },
  verdict: null,
  tokenUsed: true,
  tokenShared: false,
  sender: Buffer.alloc(32),
};

test("Order 1 is the challenge that was drawn first", () => {
  expect([challengeOf({ baitFirst: true }, 1), challengeOf({ baitFirst: true }, 2)]).toEqual(["bait", "control"]);
  expect([challengeOf({ baitFirst: false }, 1), challengeOf({ baitFirst: false }, 2)]).toEqual(["control", "bait"]);
  for (const baitFirst of [true, false])
    for (const order of [1, 2] as const) expect(orderOf({ baitFirst }, challengeOf({ baitFirst }, order))).toBe(order);
});

describe("An authorization for the order whose answer is lost", () => {
  const unpaid = { ...PAID, paid: null, taken: null, lostAt: null, sentAgainAt: null };
  test.each([
    { name: "with no payment before it", lost: unpaid, signed: nonce, seconds: 0, expected: "first" },
    {
      name: "that is the payment under way",
      lost: { ...unpaid, taken: nonce },
      signed: nonce,
      seconds: 0,
      expected: "first",
    },
    {
      name: "during another payment under way",
      lost: { ...unpaid, taken: nonce },
      signed: other,
      seconds: 0,
      expected: "early",
    },
    { name: "that is the settled payment", lost: PAID, signed: nonce, seconds: 0, expected: "first" },
    {
      name: "that is the settled payment, after the window",
      lost: PAID,
      signed: nonce,
      seconds: 1_000,
      expected: "first",
    },
    {
      name: "after a settled payment whose answer is not lost yet",
      lost: { ...PAID, lostAt: null },
      signed: other,
      seconds: 1_000,
      expected: "second",
    },
    {
      name: "right after the answer was lost",
      lost: { ...PAID, sentAgainAt: null },
      signed: other,
      seconds: 0,
      expected: "second",
    },
    { name: "after the lost answer was sent", lost: PAID, signed: other, seconds: 1, expected: "second" },
    { name: "in the window's last moment", lost: PAID, signed: other, seconds: 119.999, expected: "second" },
    { name: "as the window ends", lost: PAID, signed: other, seconds: 120, expected: "late" },
    {
      name: "for an order whose payment a reorganization removed",
      lost: { ...PAID, paid: null, taken: null },
      signed: other,
      seconds: 1,
      expected: "first",
    },
  ] as const)("An authorization $name counts as $expected", ({ lost, signed, seconds, expected }) =>
    expect(presented(lost, signed, secondsLater(seconds))).toBe(expected),
  );
});

describe("The conditions for a PASS", () => {
  test.each([
    { name: "sent again, window over", of: session, lost: PAID, seconds: 120, expected: true },
    { name: "window not over", of: session, lost: PAID, seconds: 119.999, expected: false },
    {
      name: "settlement status requested",
      of: session,
      lost: { ...PAID, sentAgainAt: null, askedAt: secondsLater(1) },
      seconds: 120,
      expected: true,
    },
    {
      name: "not sent again and no status request",
      of: session,
      lost: { ...PAID, sentAgainAt: null },
      seconds: 120,
      expected: false,
    },
    {
      name: "another authorization came early",
      of: session,
      lost: { ...PAID, secondAt: secondsLater(-1) },
      seconds: 120,
      expected: false,
    },
    { name: "plain order unpaid", of: { ...session, control: null }, lost: PAID, seconds: 120, expected: false },
    { name: "lost order's payment gone", of: session, lost: { ...PAID, paid: null }, seconds: 120, expected: false },
    { name: "answer not lost", of: session, lost: { ...PAID, lostAt: null }, seconds: 120, expected: false },
    { name: "session over", of: session, lost: PAID, seconds: 3_540, expected: false },
    { name: "verdict given", of: { ...session, verdict: "fail" as const }, lost: PAID, seconds: 120, expected: false },
  ] as const)("A retry session may pass: $expected ($name)", ({ of, lost, seconds, expected }) =>
    expect(isSafe(of, lost, secondsLater(seconds))).toBe(expected),
  );
});

describe("A session of a test with a bait", () => {
  const baited = (paid: Door | null, shown: readonly Door[], tokenUsed: boolean): Session => ({
    ...session,
    product: "scam",
    served: {
      token: { ...UNSERVED, bait: shown.includes("token") ? LOST : null },
      wallet: { ...UNSERVED, bait: shown.includes("wallet") ? LOST : null },
    },
    control: paid === null ? null : { nonce, transaction: nonce, door: paid },
    tokenUsed,
  });

  test.each([
    ["did not pay", baited(null, ["token", "wallet"], true), false],
    ["paid and was shown the bait with the token", baited("token", ["token"], true), true],
    ["paid with the token, which was shown no bait", baited("token", ["wallet"], true), false],
    ["paid without the token, which was shown the bait", baited("wallet", ["token"], true), false],
    ["paid and was shown the bait without the token, and uses none", baited("wallet", ["wallet"], false), true],
    ["paid and was shown the bait without the token, but uses one", baited("wallet", ["wallet"], true), false],
    ["paid without the token, and was shown no bait", baited("wallet", [], false), false],
  ])(
    "A wallet passes only if the door that took its payment also showed the bait: a wallet that %s",
    (_, played, passed) => expect(isPassed(played)).toBe(passed),
  );
});
