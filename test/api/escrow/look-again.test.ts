import { expect, test } from "vitest";
import { connect } from "../../../api/adapters/postgres/connection.ts";
import { createEscrowStore } from "../../../api/adapters/postgres/escrow-store.ts";
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
