import fc from "fast-check";
import { expect, test } from "vitest";
import { fateOf, type WatchedPayment } from "../../../api/sellers/payment-fate.ts";

const payment = (place: number, validBefore = 1_000n): WatchedPayment => ({
  exam: "e".repeat(32),
  payer: `0x${"e8".repeat(20)}`,
  nonce: `0x${String(place).padStart(64, "0")}`,
  validBefore,
});
const used = (...payments: readonly WatchedPayment[]) => new Set(payments.map(({ nonce }) => nonce));
const [one, two] = [payment(1), payment(2)];

test.each([
  ["all used", { used: used(one, two), time: 0n }, "final"],
  ["one missing, which could still be submitted", { used: used(one), time: 999n }, null],
  ["one missing, which nobody can submit any more", { used: used(one), time: 1_000n }, "reversed"],
  ["all missing, and all over", { used: used(), time: 2_000n }, "reversed"],
])("with %s in a final block, the payments of an exam are rightly judged", (_, view, fate) => {
  expect(fateOf([one, two], view)).toBe(fate);
});

test("an exam is never called reversed while each missing payment may still come, nor final while one is missing", () => {
  const drawn = fc.array(fc.record({ isUsed: fc.boolean(), validBefore: fc.bigInt(0n, 5n) }), { minLength: 1 });
  fc.assert(
    fc.property(drawn, fc.bigInt(0n, 5n), (plans, time) => {
      const all = plans.map(({ validBefore }, place) => payment(place, validBefore));
      const seen = used(...all.filter((_, place) => plans[place]?.isUsed));
      const fate = fateOf(all, { time, used: seen });
      const missing = plans.filter(({ isUsed }) => !isUsed);
      expect(fate === "final").toBe(missing.length === 0);
      if (fate === "reversed") expect(missing.some(({ validBefore }) => validBefore <= time)).toBe(true);
    }),
  );
});
