import { expect, test } from "vitest";
import { connect } from "../../../api/adapters/postgres/connection.ts";
import { createEscrowStore } from "../../../api/adapters/postgres/escrow-store.ts";
import type { Hex } from "../../../api/kernel/wallet.ts";
import { forFile } from "../../support/for-file.ts";
import { connectOwner, freshDatabase } from "../../support/service/database.ts";

const database = await freshDatabase();
const owner = await forFile(connectOwner(database));
const store = createEscrowStore(await forFile(connect(database.apiUrl)));

const WINDOW_ENDS = 2_000_000_000;

test("a task whose contest was answered while it was looked at is due at once, not when the window would have ended", async () => {
  await owner.query(
    `INSERT INTO escrow_task (payment, chain, contract, info, decision, record, merchant, amount, contest_until)
     SELECT decode(repeat(digits, 32), 'hex'), 8453, decode(repeat('aa', 20), 'hex'), '{"maxAmount": "1", "salt": "1"}', 'release',
       decode(repeat('cc', 32), 'hex'), decode(repeat('dd', 20), 'hex'), 1, $1 FROM unnest(ARRAY['01', '02']) AS digits`,
    [WINDOW_ENDS],
  );
  const [answered, silent] = (await store.take(2)).toSorted((a, b) => (a.payment < b.payment ? -1 : 1));
  if (answered === undefined || silent === undefined) throw new Error("two tasks are due");
  expect([answered.contestUntil, silent.contestUntil]).toEqual([WINDOW_ENDS, WINDOW_ENDS]);
  await owner.query(
    "UPDATE escrow_task SET decision = 'refund', contest_until = NULL, look_at = now() WHERE payment = decode(repeat('01', 32), 'hex')",
  );
  for (const seen of [answered, silent]) await store.lookAgain(seen, 300);
  expect(await store.take(2)).toMatchObject([{ payment: answered.payment, decision: "refund", contestUntil: null }]);
});

const MERCHANT = `0x${"ee".repeat(20)}` as const;
const COST = { gas: 50_000n, most: 150_000n };

const decide = (by: typeof store, id: Hex) => {
  const info = {
    ...({
      operator: `0x${"aa".repeat(20)}`,
      payer: `0x${"bb".repeat(20)}`,
      receiver: MERCHANT,
      token: MERCHANT,
    } as const),
    ...{ maxAmount: 10_000n, preApprovalExpiry: 1, authorizationExpiry: 2, refundExpiry: 3, minFeeBps: 100 },
    ...{ maxFeeBps: 100, feeReceiver: MERCHANT, salt: 1n },
  };
  const network = "eip155:8453" as const;
  const hold = { network, contract: info.operator, id, info, transaction: id, block: 1, refundableFrom: 1 };
  const evaluation = { payment: id, decision: "release", rule: "delivered", record: id, document: "{}" } as const;
  const window = { seconds: 60, until: WINDOW_ENDS, conditions: {}, promised: PROMISED, delivered: SIGNED } as const;
  return by.decide(hold, evaluation, { ...COST, told: id, window });
};
const PROMISED = { expect: null, httpDelivery: null };
const SIGNED = { status: 200, body_sha256: "0x", content_type: "", content_encoding: "" } as const;
const payment = (place: number): Hex => `0x${String(place).padStart(64, "0")}`;
const countOf = async (what: string) =>
  (await owner.query<{ count: number }>(`SELECT ${what} AS count`)).rows[0]?.count;

const GAS = `FROM escrow_gas WHERE account = decode('${MERCHANT.slice(2)}', 'hex')`;

test("of processes that decide one payment at the same time one stores it, and its merchant is charged once", async () => {
  const other = createEscrowStore(await forFile(connect(database.apiUrl)));
  expect(await decide(store, payment(10))).toBe("stored");
  // Both have looked for the payment's task before either can store one.
  await owner.query(`BEGIN; SELECT ${GAS} FOR UPDATE`);
  const deciding = Promise.all([decide(store, payment(11)), decide(other, payment(11))]);
  await expect
    .poll(() => countOf("(SELECT count(*)::int FROM pg_locks WHERE NOT granted)"), { timeout: 4_000 })
    .toBe(2);
  await owner.query("COMMIT");
  expect((await deciding).toSorted()).toEqual(["stored", "taken"]);
  expect(await countOf(`(SELECT gas::int ${GAS})`)).toBe(100_000);
  expect(await Promise.all([10, 11].map((place) => decide(store, payment(place))))).toEqual(["taken", "taken"]);
});

test("a decision that its merchant has no gas left for stores nothing", async () => {
  expect(await Promise.all([12, 13].map((place) => decide(store, payment(place))))).toEqual(["stored", "spent"]);
  expect(await store.decided(payment(13))).toEqual({ evaluation: null, task: null });
  expect(await countOf("(SELECT count(*)::int FROM escrow_window)")).toBe(3);
});
