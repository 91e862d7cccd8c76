import { randomUUID } from "node:crypto";
import { describe, expect, onTestFinished, test } from "vitest";
import { createJournal } from "../../../api/payments/journal/journal-store.ts";
import type { Entered, Journal, NewPayment } from "../../../api/payments/journal.ts";
import type { State } from "../../../api/payments/step-types.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { createSeal } from "../../../api/platform/db/seal.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { apply, COMPLETE, hex, newPayment, PATHS } from "../../support/payments/journal-rows.ts";
import { chargedOnce } from "../../support/payments/on-chain.ts";
import { post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { binary, connectOwner, endBlocked, freshDatabase } from "../../support/service/database.ts";
import { startDatabaseLink } from "../../support/service/database-link.ts";
import { startService } from "../../support/service/service.ts";

const PATIENT = { timeout: 30_000, interval: 10 };
const SEAL = createSeal(Buffer.alloc(32, 3));
const CROWD = 8;

const database = await freshDatabase();
const owner = await forFile(connectOwner(database));
const newPool = (max = 16) => connect(database.apiUrl, max);
/** Two processes' views of one journal. */
const journal = createJournal(await forFile(newPool()), SEAL);
const other = createJournal(await forFile(newPool()), SEAL);

/** Brings a new payment to the state under one lease. */
async function paymentIn(state: State, more: Parameters<typeof newPayment>[0] = {}) {
  const [payment, token] = [newPayment(more), randomUUID()];
  expect(await journal.insert(payment, token)).toBe(1);
  for (const change of PATHS[state]) expect(await apply(journal, { ...payment, token }, { change })).toBe(1);
  return { ...payment, token };
}

const ofPayment = ({ key }: NewPayment, text: string) => owner.query(text, [binary(key.nonce)]);
const endLease = (payment: NewPayment) =>
  ofPayment(payment, "UPDATE payment SET lease_until = '-infinity' WHERE nonce = $1");
/** Returns all columns of a payment's row. */
const rowOf = async (payment: NewPayment) =>
  (await ofPayment(payment, "SELECT *, payment::text AS everything FROM payment WHERE nonce = $1")).rows[0];
const countOf = async (table: "certificate" | "settlement_mark" | "payment") =>
  (await owner.query<{ n: number }>(`SELECT count(*)::int AS n FROM ${table}`)).rows[0]?.n;

const waiting = async (wanted: number) =>
  expect
    .poll(async () => {
      const text = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
      return (await owner.query(text)).rowCount;
    }, PATIENT)
    .toBe(wanted);

/**
 * Starts all attempts against a locked row, so that they really compete. Returns the number of rows that each one
 * changed.
 */
async function concurrently(payment: NewPayment, attempt: (by: Journal) => Promise<Entered>): Promise<Entered[]> {
  return withClient(database.ownerUrl, async (client) => {
    await client.query("BEGIN");
    await client.query("SELECT 1 FROM payment WHERE nonce = $1 FOR UPDATE", [binary(payment.key.nonce)]);
    const attempts = Array.from({ length: CROWD }, (_, i) => attempt(i % 2 === 0 ? journal : other));
    await waiting(CROWD);
    await client.query("ROLLBACK");
    return (await Promise.all(attempts)).sort();
  });
}

const ONE_WINNER = [...Array(CROWD - 1).fill(0), 1];

describe("Concurrent writers", () => {
  test.each(["received", "settling", "settled"] as const)(
    "Exactly one of many concurrent takes of an expired lease wins for a payment that is %s",
    async (state) => {
      const payment = await paymentIn(state);
      await endLease(payment);
      expect(await concurrently(payment, (by) => by.take(payment.key, state, randomUUID()))).toEqual(ONE_WINNER);
      expect((await rowOf(payment)).attempts).toBe(2);
      expect(await other.take(payment.key, state, randomUUID())).toBe(0);
    },
  );

  test("Exactly one of many concurrent revivals of a refused payment wins", async () => {
    const payment = await paymentIn("void");
    expect(await concurrently(payment, (by) => by.revive(payment.key, randomUUID(), payment))).toEqual(ONE_WINNER);
    expect((await rowOf(payment)).state).toBe("settling");
  });

  test("A take fails if the payment's state changed while it waited", async () => {
    const payment = await paymentIn("received");
    await endLease(payment);
    await withClient(database.ownerUrl, async (client) => {
      await client.query("BEGIN");
      await client.query("UPDATE payment SET state = 'settling', input = 'null' WHERE nonce = $1", [
        binary(payment.key.nonce),
      ]);
      const take = other.take(payment.key, "received", randomUUID());
      await waiting(1);
      await client.query("COMMIT");
      expect(await take).toBe(0);
    });
  });

  test.each([
    ["commits, no other insert counts", "COMMIT", 0],
    ["fails, exactly one other insert counts", "ROLLBACK", 1],
  ])("When the first of several concurrent inserts of one payment %s", async (_, end, others) => {
    const pool = newPool(1);
    onTestFinished(() => pool.end());
    const first = createJournal(pool, SEAL);
    for (const payer of [undefined, hex(20)]) {
      // The same authorization, or different ones under one payment identifier.
      const next = () => (payer === undefined ? same : newPayment({ payer, paymentId: "order-1" }));
      const same = newPayment();
      const before = (await countOf("payment")) ?? 0;
      await pool.query("BEGIN");
      expect(await first.insert(next(), randomUUID())).toBe(1);
      const inserts = [journal, other, journal, other].map((by) => by.insert(next(), randomUUID()));
      // Concurrent statements of one process share a transaction.
      await waiting(2);
      await pool.query(end);
      const changed = (await Promise.all(inserts)).filter((rows) => rows === 1).length;
      expect(changed).toBe(others);
      expect(await countOf("payment")).toBe(before + 1);
    }
  });
});

describe("A run that lost its lease", () => {
  test("A write loses to a take that committed while the write waited", async () => {
    const payment = await paymentIn("settled");
    await withClient(database.ownerUrl, async (client) => {
      await client.query("BEGIN");
      await client.query("UPDATE payment SET lease_token = $2 WHERE nonce = $1", [
        binary(payment.key.nonce),
        randomUUID(),
      ]);
      const write = apply(journal, payment, { change: COMPLETE });
      await waiting(1);
      await client.query("COMMIT");
      expect(await write).toBe(0);
    });
    expect((await rowOf(payment)).state).toBe("settled");
  });
});

test("An unacknowledged commit gets 503, stores record and result together or not at all, and the retry gets its result", async () => {
  const link = await startDatabaseLink(database.apiUrl);
  const chain = await startTestChain();
  const service = await startService({ chain, database, config: { databaseUrl: link.url }, jobs: false });
  const unheard = async (answering: () => Promise<unknown>, left: readonly [State, number]) => {
    const signed = await signPayment(await newPayer(chain));
    const pay = () => post(`${service.url}/test/basic`, v2(signed));
    const [known, records] = [binary(signed.authorization.nonce), (await countOf("certificate")) ?? 0];
    const [answer] = await Promise.all([pay(), answering()]);
    expectProblem(answer, 503, "payment_pending");
    const { rows } = await owner.query("SELECT state FROM payment WHERE nonce = $1", [known]);
    expect([rows[0]?.state, ((await countOf("certificate")) ?? 0) - records]).toEqual(left);
    await owner.query("UPDATE payment SET lease_until = '-infinity' WHERE nonce = $1", [known]);
    expect((await pay()).status).toBe(200);
    expect(((await countOf("certificate")) ?? 0) - records).toBe(1);
    await chargedOnce(chain, signed);
  };
  try {
    await withClient(database.ownerUrl, async (client) => {
      await client.query("BEGIN");
      await client.query("LOCK TABLE certificate IN EXCLUSIVE MODE");
      const storing = async () => {
        await endBlocked(database, "INSERT INTO certificate");
        await client.query("ROLLBACK");
      };
      await unheard(storing, ["settling", 0]);
    });
    link.loseNextCommit();
    await unheard(() => Promise.resolve(), ["fulfilled", 1]);
  } finally {
    await service.stop();
    link.stop();
    await chain.stop();
  }
});
