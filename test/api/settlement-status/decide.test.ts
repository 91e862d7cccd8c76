import { expect, test } from "vitest";
import { decide, type Seen } from "../../../api/settlement-status/decide.ts";
import type { Question } from "../../../api/settlement-status/question.ts";
import type { NonceEnd } from "../../../api/settlement-status/reading.ts";

const HASH = `0x${"ab".repeat(32)}` as const;
const [PAYER, PAYEE, OTHER] = ["11", "22", "33"].map((byte) => `0x${byte.repeat(20)}` as const) as [
  `0x${string}`,
  `0x${string}`,
  `0x${string}`,
];
/** Valid in blocks from second 1,001 to second 1,999. */
const WHOLE: Question = {
  network: "eip155:8453",
  from: PAYER,
  nonce: HASH,
  to: PAYEE,
  value: 250_000n,
  validAfter: 1_000n,
  validBefore: 2_000n,
  transaction: null,
};
const NAMED: Question = { ...WHOLE, to: null, value: null, validAfter: null, validBefore: null };

const asOf = (time: bigint) => ({ number: 50, time });
const final = (time: bigint) => ({ number: 40, time, hash: HASH });
const unused = (time: bigint, unusedBefore: bigint | null): Seen => ({
  nonce: "unused",
  reading: { used: false, at: asOf(time) },
  unusedBefore: unusedBefore === null ? null : final(unusedBefore),
});
const end = (time: bigint, transfer: NonceEnd["transfer"]): NonceEnd => ({
  transaction: HASH,
  block: { number: 45, hash: HASH, time },
  transfer,
});
const paid = (time: bigint, { to = PAYEE, value = 250_000n } = {}): Seen => ({
  nonce: "used",
  asOf: asOf(5_000n),
  end: end(time, { to, value }),
  isFinal: true,
});

test.each([
  ["before its window", WHOLE, unused(1_000n, null), { status: "pending", window: "not_yet" }],
  ["at the first second of its window", WHOLE, unused(1_001n, null), { status: "pending", window: "open" }],
  ["at the last second of its window", WHOLE, unused(1_999n, null), { status: "pending", window: "open" }],
  ["after its window, nothing final", WHOLE, unused(2_000n, null), { status: "pending", window: "closed" }],
  ["after its window, a final block at its end", WHOLE, unused(2_900n, 2_000n), { status: "expired", final: true }],
  ["with nothing known of its window", NAMED, unused(9_000n, null), { status: "pending", window: "unknown" }],
] as const)("not used, %s", (...[, question, seen, expected]) => {
  expect(decide(question, seen)).toMatchObject(expected);
});

test.each([
  ["in its window", WHOLE, paid(1_999n), "settled"],
  ["in the first second of its window", WHOLE, paid(1_001n), "settled"],
  ["too early for its window", WHOLE, paid(1_000n), "replaced"],
  ["for another payee", WHOLE, paid(1_500n, { to: OTHER }), "replaced"],
  ["for another value", WHOLE, paid(1_500n, { value: 250_001n }), "replaced"],
  ["for whatever it was, when nothing of it is known", NAMED, paid(9_999n, { to: OTHER, value: 1n }), "settled"],
] as const)("used %s", (...[, question, seen, status]) => {
  expect(decide(question, seen)).toMatchObject({ status, final: true });
});

test("a nonce that ends at the end of the window or later proves that the authorization expired, once that is final", () => {
  for (const transfer of [{ to: PAYEE, value: 250_000n }, null]) {
    const late: Seen = { nonce: "used", asOf: asOf(5_000n), end: end(2_000n, transfer), isFinal: true };
    expect(decide(WHOLE, late)).toEqual({
      status: "expired",
      final: true,
      asOf: { number: 45, time: 2_000n },
      finalBlock: { number: 45, hash: HASH, time: 2_000n },
    });
    expect(decide(WHOLE, { ...late, isFinal: false })).toMatchObject({ status: "pending", window: "closed" });
  }
});

test("a final answer is as of the block that proves it", () => {
  expect(decide(WHOLE, paid(1_500n))).toMatchObject({ asOf: { number: 45, time: 1_500n } });
  expect(decide(WHOLE, unused(2_900n, 2_000n))).toMatchObject({ asOf: { number: 40, time: 2_000n } });
});

test("a cancellation is never a settlement", () => {
  const seen: Seen = { nonce: "used", asOf: asOf(5_000n), end: end(1_500n, null), isFinal: false };
  for (const question of [WHOLE, NAMED])
    expect(decide(question, seen)).toMatchObject({ status: "canceled", final: false });
});

test.each(["unfinished", "nowhere", "later"] as const)("a used nonce without its transaction, %s", (search) => {
  const seen: Seen = { nonce: "used", asOf: asOf(5_000n), end: null, search };
  expect(decide(WHOLE, seen)).toEqual({ status: "used", final: false, asOf: asOf(5_000n), search });
});
