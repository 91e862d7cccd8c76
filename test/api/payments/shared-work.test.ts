import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { createJournal } from "../../../api/payments/journal/journal-store.ts";
import type { State } from "../../../api/payments/step-types.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { createSeal } from "../../../api/platform/db/seal.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { apply, newPayment, PATHS, WRITES } from "../../support/payments/journal-rows.ts";
import { unixNow } from "../../support/payments/signing.ts";
import { connectOwner, freshDatabase } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

const ROWS = 90;
const PROCESSES = 3;
const soon = { timeout: 30_000, interval: 50 };

const chain = await forFile(startTestChain());
// The final block is later than every window here.
await chain.mine(5);
const database = await freshDatabase();
const owner = await forFile(connectOwner(database));
const SEAL = createSeal(Buffer.alloc(32, 3));
const journals = await Promise.all(
  Array.from({ length: PROCESSES }, async () => createJournal(await forFile(connect(database.apiUrl, 2)), SEAL)),
);
const [journal] = journals as [ReturnType<typeof createJournal>];

/** Submitted, never settled, and its window over: each of them takes one look and one write. */
async function abandoned(rows: number, scheme = "exact"): Promise<void> {
  for (let n = 0; n < rows; n++) {
    const [payment, token] = [newPayment({ validBefore: unixNow() - 60n, scheme }), randomUUID()];
    await journal.insert(payment, token);
    await journal.write(payment.key, token, { ...WRITES.leave, kept: payment });
    await journal.release(payment.key, token, false);
  }
  await owner.query("UPDATE payment SET next_attempt_at = now()");
}

test("a claimed payment is nobody else's for half a minute, and then anyone's", async () => {
  await abandoned(60);
  const claims = await Promise.all([...journals, ...journals].map((by) => by.due(10)));
  const nonces = claims.flat().map(({ key }) => key.nonce);
  expect([nonces.length, new Set(nonces).size]).toEqual([60, 60]);
  expect(await journal.due(10)).toEqual([]);
  // As time does.
  await owner.query("UPDATE payment SET next_attempt_at = next_attempt_at - interval '29 s'");
  expect(await journal.due(10)).toEqual([]);
  await owner.query("UPDATE payment SET next_attempt_at = next_attempt_at - interval '2 s'");
  expect(await journal.due(100)).toHaveLength(60);
  await owner.query("TRUNCATE payment");
});

test("three processes share what is due; what always fails keeps nobody from it", async () => {
  await abandoned(ROWS);
  const services = await Promise.all(Array.from({ length: PROCESSES }, () => startService({ chain, database })));
  const LEFT = "SELECT count(*)::int AS n FROM payment WHERE scheme = 'exact' AND state = 'settling'";
  const left = async () => (await owner.query(LEFT)).rows[0]?.n;
  try {
    await expect.poll(left, soon).toBe(0);
    const { rows } = await owner.query(
      "SELECT reason, attempts, count(*)::int AS n FROM payment GROUP BY reason, attempts",
    );
    // One more than when it was inserted: nobody took one that somebody else had claimed.
    expect(rows).toEqual([{ reason: "expired", attempts: 2, n: ROWS }]);
    const commands = services.map(({ logged }) => logged.filter((line) => line.includes('"msg":"gate"')).length);
    expect(commands.reduce((sum, n) => sum + n, 0)).toBe(ROWS * ["take", "look", "write"].length);
    await abandoned(200, "no-such-scheme");
    await abandoned(20);
    await expect.poll(left, soon).toBe(0);
  } finally {
    await Promise.all(services.map((service) => service.stop()));
  }
});

/** The only row of the journal, in a state; what it is, and what minutes do to it. */
async function only(state: State) {
  await owner.query("TRUNCATE payment");
  const [payment, token] = [newPayment(), randomUUID()];
  const { key } = payment;
  await journal.insert(payment, token);
  for (const change of PATHS[state]) await apply(journal, { ...payment, token }, { change });
  const SEEN =
    "SELECT parked_at IS NOT NULL AS parked, next_attempt_at > now() + interval '59 min' AS later FROM payment";
  const PASS =
    "UPDATE payment SET state_changed_at = state_changed_at - make_interval(mins => $1), next_attempt_at = now(), lease_until = '-infinity'";
  return {
    key,
    token,
    row: async () => (await owner.query(SEEN)).rows[0],
    claimAfter: async (minutes: number) => {
      await owner.query(PASS, [minutes]);
      expect(await journal.due(1)).toHaveLength(1);
    },
  };
}

test("what makes no progress for ten minutes is set aside; any progress brings it back", async () => {
  const { key, token, row, claimAfter } = await only("settled");
  const fail = async () => {
    // The run writes where the settlement is, which it was before.
    expect(await journal.write(key, token, WRITES.settle)).toBe(1);
    await journal.release(key, token, true);
  };
  await claimAfter(9);
  expect(await row()).toEqual({ parked: false, later: false });
  await fail();
  await claimAfter(2);
  expect(await row()).toMatchObject({ parked: true });
  await fail();
  expect(await journal.backlog()).toEqual({ unresolved: 0, oldestSeconds: null });
  expect(await journal.nameParked()).toMatchObject([{ nonce: key.nonce, state: "settled", failures: 2 }]);
  await claimAfter(0);
  expect(await row()).toEqual({ parked: true, later: true });
  await fail();
  expect(await journal.nameParked()).toEqual([]);
  expect(await journal.write(key, token, WRITES.goBack)).toBe(1);
  expect(await row()).toMatchObject({ parked: false });
  expect(await journal.backlog()).toMatchObject({ unresolved: 1 });
});

test("a fulfilled payment has two hours to become final before it is set aside", async () => {
  const { row, claimAfter } = await only("fulfilled");
  await claimAfter(119);
  expect(await row()).toEqual({ parked: false, later: false });
  await claimAfter(2);
  expect(await row()).toMatchObject({ parked: true });
});
