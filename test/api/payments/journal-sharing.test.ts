import { randomBytes, randomUUID } from "node:crypto";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { createJournal } from "../../../api/payments/journal/journal-store.ts";
import type { State } from "../../../api/payments/step-types.ts";
import { connect, inTransaction } from "../../../api/platform/db/connection.ts";
import { createSeal } from "../../../api/platform/db/seal.ts";
import { createSharedMessages } from "../../../api/platform/db/shared-messages.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { apply, newPayment, PATHS, WRITES } from "../../support/payments/journal-rows.ts";
import { unixNow } from "../../support/payments/signing.ts";
import { connectOwner, freshDatabase } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

describe("Statements that share a message", async () => {
  const database = await freshDatabase();
  const owner = await forFile(connectOwner(database));
  const { share, shareAll } = createSharedMessages(await forFile(connect(database.ownerUrl, 4)));
  await owner.query(
    "CREATE TABLE shared (name text PRIMARY KEY, xid text NOT NULL DEFAULT pg_current_xact_id()::text)",
  );
  beforeEach(() => owner.query("TRUNCATE shared"));

  const add = (name: string) =>
    share<{ name: string }>(
      { name: "add", text: "INSERT INTO shared (name) VALUES ($1) RETURNING name", values: [name] },
      name,
    );
  const count = (most: string) =>
    share<{ n: number }>(
      { name: "count", text: "SELECT count(*)::int AS n FROM shared WHERE name <= $1", values: [most] },
      `${most}?`,
    );
  const stored = async () =>
    (await owner.query<{ name: string; xid: string }>("SELECT name, xid FROM shared ORDER BY name")).rows;
  const reasons = (settled: readonly PromiseSettledResult<unknown>[]) =>
    settled.map((one) => (one.status === "fulfilled" ? null : String(one.reason.message)));

  test("Concurrent statements share a transaction, and each caller gets its own result", async () => {
    const answers = await Promise.all([add("c"), count("b"), add("a"), add("b"), count("c")]);
    // They run in the order of their lock keys: a, b, the count up to b, c, the count up to c.
    expect(answers.map(({ rows }) => rows)).toEqual([
      [{ name: "c" }],
      [{ n: 2 }],
      [{ name: "a" }],
      [{ name: "b" }],
      [{ n: 3 }],
    ]);
    const rows = await stored();
    expect(rows.map(({ name }) => name)).toEqual(["a", "b", "c"]);
    expect(new Set(rows.map(({ xid }) => xid)).size).toBe(1);
  });

  test("A failing statement fails alone and keeps the connection's prepared statements usable", async () => {
    const pool = await forFile(connect(database.ownerUrl, 1));
    const { share: shareOne } = createSharedMessages(pool);
    const ask = (name: string, text: string) => shareOne({ name, text, values: [] }, name);
    const session = async () => (await pool.query("SELECT pg_backend_pid() AS pid")).rows;
    const before = await session();
    const one = { name: "1 one", text: "INSERT INTO shared (name) VALUES ('a')" };
    const wrong = { name: "2 wrong", text: "SELECT 1 / (SELECT count(*) - 1 FROM shared)" };
    const late = { name: "3 late", text: "INSERT INTO shared (name) VALUES ('b')" };
    const settled = await Promise.allSettled([late, one, wrong].map(({ name, text }) => ask(name, text)));
    expect(reasons(settled)).toEqual([null, null, expect.stringContaining("division by zero")]);
    expect((await stored()).map(({ name }) => name)).toEqual(["a", "b"]);
    expect((await ask(wrong.name, wrong.text)).rowCount).toBe(1);
    expect(await session()).toEqual(before);
  });

  test("A lost connection rejects every statement that shared it, and none is sent again", async () => {
    await owner.query("BEGIN");
    await owner.query("INSERT INTO shared (name) VALUES ('b')");
    const sent = Promise.allSettled([add("a"), add("b"), add("c")]);
    const end = `SELECT pg_terminate_backend(pid) AS ended FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    await expect.poll(async () => (await owner.query(end)).rows).toEqual([{ ended: true }]);
    await owner.query("ROLLBACK");
    for (const reason of reasons(await sent)) expect(reason).toMatch(/terminat/);
    expect(await stored()).toEqual([]);
    expect((await add("d")).rows).toEqual([{ name: "d" }]);
  });

  test("Statements of one payment take effect together or not at all, independently of other payments", async () => {
    const insert = (name: string) => ({
      name: "add",
      text: "INSERT INTO shared (name) VALUES ($1) RETURNING name",
      values: [name],
    });
    const settled = await Promise.allSettled([
      shareAll([insert("a"), insert("b")], "1"),
      shareAll([insert("c"), insert("c")], "2"),
      shareAll([insert("d")], "3"),
    ]);
    expect(reasons(settled)).toEqual([null, expect.stringContaining("duplicate key"), null]);
    expect((await stored()).map(({ name }) => name)).toEqual(["a", "b", "d"]);
    const [first] = settled.map((one) => (one.status === "fulfilled" ? one.value.map(({ rows }) => rows) : null));
    expect(first).toEqual([[{ name: "a" }], [{ name: "b" }]]);
  });

  test("A statement that fails at COMMIT fails alone", async () => {
    await owner.query("CREATE TABLE child (name text REFERENCES shared DEFERRABLE INITIALLY DEFERRED)");
    onTestFinished(async () => void (await owner.query("DROP TABLE child")));
    const child = { name: "child", text: "INSERT INTO child (name) VALUES ($1)", values: ["missing"] };
    const settled = await Promise.allSettled([add("a"), share(child, "b"), add("c")]);
    expect(reasons(settled)).toEqual([null, expect.stringContaining("foreign key"), null]);
    expect((await stored()).map(({ name }) => name)).toEqual(["a", "c"]);
  });

  test("A transaction whose failure was ignored is not reported as committed", async () => {
    const pool = await forFile(connect(database.ownerUrl, 1));
    const overlooked = inTransaction(pool, async (client) => {
      await client.query("INSERT INTO shared (name) VALUES ('a')");
      await client.query("SELECT 1 / 0").catch(() => undefined);
    });
    await expect(overlooked).rejects.toThrow("rolled back");
    expect(await stored()).toEqual([]);
  });

  test("Payers are locked in the order of their addresses", async () => {
    // One address has its highest bit set, and two share their first bytes.
    const random = Array.from({ length: 40 }, () => randomBytes(20).toString("hex"));
    const payers = [
      ...random,
      `ff${"00".repeat(19)}`,
      `${"7f".repeat(4)}${"01".repeat(16)}`,
      `${"7f".repeat(20)}`,
    ].sort();
    const keys: number[] = [];
    for (const payer of payers) {
      await owner.query("BEGIN");
      await owner.query("SELECT admit_payment(decode($1, 'hex'), 1, 1)", [payer]);
      const held = "SELECT objid::bigint AS key FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()";
      keys.push(...(await owner.query<{ key: string }>(held)).rows.map(({ key }) => Number(key)));
      await owner.query("COMMIT");
    }
    expect(keys).toHaveLength(payers.length);
    expect(keys).toEqual(keys.toSorted((one, other) => one - other));
  });
});

describe("Processes that share work", async () => {
  const ROWS = 90;
  const PROCESSES = 3;
  const soon = { timeout: 30_000, interval: 50 };

  const chain = await forFile(startTestChain());
  // Makes the final block later than every window below.
  await chain.mine(5);
  const database = await freshDatabase();
  const owner = await forFile(connectOwner(database));
  const SEAL = createSeal(Buffer.alloc(32, 3));
  const journals = await Promise.all(
    Array.from({ length: PROCESSES }, async () => createJournal(await forFile(connect(database.apiUrl, 2)), SEAL)),
  );
  const [journal] = journals as [ReturnType<typeof createJournal>];

  /** Inserts payments that were submitted, never settled, and have expired. Each takes one lookup and one write. */
  async function abandoned(rows: number, scheme = "exact"): Promise<void> {
    for (let n = 0; n < rows; n++) {
      const [payment, token] = [newPayment({ validBefore: unixNow() - 60n, scheme }), randomUUID()];
      await journal.insert(payment, token);
      await journal.write(payment.key, token, { ...WRITES.leave, kept: payment });
      await journal.release(payment.key, token, false);
    }
    await owner.query("UPDATE payment SET next_attempt_at = now()");
  }

  test("A claimed payment is reserved for 30 seconds and then available to any process", async () => {
    await abandoned(60);
    const claims = await Promise.all([...journals, ...journals].map((by) => by.due(10)));
    const nonces = claims.flat().map(({ key }) => key.nonce);
    expect([nonces.length, new Set(nonces).size]).toEqual([60, 60]);
    expect(await journal.due(10)).toEqual([]);
    // Simulates 29 seconds.
    await owner.query("UPDATE payment SET next_attempt_at = next_attempt_at - interval '29 s'");
    expect(await journal.due(10)).toEqual([]);
    await owner.query("UPDATE payment SET next_attempt_at = next_attempt_at - interval '2 s'");
    expect(await journal.due(100)).toHaveLength(60);
    await owner.query("TRUNCATE payment");
  });

  test("Three processes share the due payments, and payments that always fail do not block the others", async () => {
    await abandoned(ROWS);
    const services = await Promise.all(Array.from({ length: PROCESSES }, () => startService({ chain, database })));
    const LEFT = "SELECT count(*)::int AS n FROM payment WHERE scheme = 'exact' AND state = 'settling'";
    const left = async () => (await owner.query(LEFT)).rows[0]?.n;
    try {
      await expect.poll(left, soon).toBe(0);
      const { rows } = await owner.query(
        "SELECT reason, attempts, count(*)::int AS n FROM payment GROUP BY reason, attempts",
      );
      // One attempt more than at insertion, so no payment was taken twice.
      expect(rows).toEqual([{ reason: "expired", attempts: 2, n: ROWS }]);
      await abandoned(200, "no-such-scheme");
      await abandoned(20);
      await expect.poll(left, soon).toBe(0);
    } finally {
      await Promise.all(services.map((service) => service.stop()));
    }
  });

  /** Makes a payment in the state the journal's only row. Returns functions to read it and to age it by minutes. */
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

  test("A payment without progress for ten minutes is parked until it makes progress", async () => {
    const { key, token, row, claimAfter } = await only("settled");
    const fail = async () => {
      // The run writes the same settlement as before.
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

  test("A fulfilled payment has two hours to become final before it is parked", async () => {
    const { row, claimAfter } = await only("fulfilled");
    await claimAfter(119);
    expect(await row()).toEqual({ parked: false, later: false });
    await claimAfter(2);
    expect(await row()).toMatchObject({ parked: true });
  });
});
