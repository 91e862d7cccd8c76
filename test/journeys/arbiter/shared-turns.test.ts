import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import { connect } from "../../../api/adapters/postgres/connection.ts";
import { createJournal } from "../../../api/adapters/postgres/journal.ts";
import { createSeal } from "../../../api/adapters/postgres/seal.ts";
import { createVerdictStore } from "../../../api/adapters/postgres/verdict-store.ts";
import { verdictId } from "../../../api/arbiter/request.ts";
import { type NewVerdict, VERDICT_QUEUE } from "../../../api/arbiter/verdict-store.ts";
import type { StoredAnswer } from "../../../api/kernel/completion.ts";
import type { PaymentKey } from "../../../api/kernel/route.ts";
import type { Transaction } from "../../../api/kernel/transaction.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { sha256 } from "../../support/arbiter/rows.ts";
import { forFile } from "../../support/for-file.ts";
import { apply, newPayment, PATHS } from "../../support/payments/journal-rows.ts";
import { binary, connectOwner, freshDatabase } from "../../support/service/database.ts";

const PATIENT = { timeout: 20_000, interval: 10 };
const LOG = `hashtext('${VERDICT_QUEUE}')`;

const database = await freshDatabase();
const owner = await forFile(connectOwner(database));
const reading = await forFile(connect(database.ownerUrl, 4));

/** What one process completes sales with. */
async function startProcess() {
  const pool = await forFile(connect(database.apiUrl, 4));
  return { journal: createJournal(pool, createSeal(Buffer.alloc(32, 3))), store: createVerdictStore(pool) };
}
// A commit of verdicts waits while a test holds this lock.
await owner.query(`
  CREATE FUNCTION wait_at_commit() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END $$;
  CREATE CONSTRAINT TRIGGER wait_at_commit AFTER INSERT ON verdict
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait_at_commit()`);
const here = await startProcess();
const elsewhere = await startProcess();

/** A verdict whose document says where it stands in the log. */
const newVerdict = (id: string, text = id): NewVerdict => ({
  id,
  supersedes: null,
  request: { category: "payload-hash", conditions: {}, conditionsSha256: sha256(id), dealRef: null, parties: null },
  outcome: "release",
  issuedAt: new Date(),
  signAt({ index, previousSha256 }) {
    const document = JSON.stringify({ text, index, previousSha256 }).replaceAll("\\u0000", "\0");
    return { document, sha256: sha256(document) };
  },
});

interface Settled {
  readonly key: PaymentKey;
  readonly token: string;
}

async function settledPayment(): Promise<Settled> {
  const [payment, token] = [newPayment(), randomUUID()];
  await here.journal.insert(payment, token);
  for (const change of PATHS.settled) await apply(here.journal, { ...payment, token }, { change });
  return { key: payment.key, token };
}
const settledPayments = (count: number) => Promise.all(Array.from({ length: count }, settledPayment));

type Complete = (transaction: Transaction) => Promise<StoredAnswer>;
const selling =
  (verdict: NewVerdict): Complete =>
  async (transaction) => {
    const { document } = await here.store.append(verdict, transaction);
    return { status: 200, body: Buffer.from(document), location: null };
  };
const sell = (
  { key, token }: Settled,
  { by = here, complete = selling(newVerdict(verdictId(key))) }: { by?: typeof here; complete?: Complete } = {},
) => by.journal.complete(key, token, { completion: { queue: VERDICT_QUEUE, complete }, settlement: null });

const BLOCKED = `SELECT pid FROM pg_stat_activity
  WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE $1`;
/** Waits until exactly one connection waits for a lock with this statement; returns its process id. */
async function blocked(query: string, { not = 0 } = {}): Promise<number> {
  const pids = async () => (await reading.query<{ pid: number }>(BLOCKED, [`${query}%`])).rows.map(({ pid }) => pid);
  await expect.poll(async () => (await pids()).filter((pid) => pid !== not), PATIENT).toHaveLength(1);
  return (await pids())[0] ?? 0;
}

/** A turn that writes nothing waits for the log's lock; the works that come meanwhile share the next transaction. */
async function sharing<T>(ahead: () => Promise<unknown>, works: () => readonly Promise<T>[]) {
  return withClient(database.ownerUrl, async (client) => {
    await client.query(`SELECT pg_advisory_lock(${LOG})`);
    const first = ahead();
    await blocked("SELECT pg_advisory_xact_lock");
    const waiting = Promise.allSettled(works());
    await client.query(`SELECT pg_advisory_unlock(${LOG})`);
    expect(await first).toBeNull();
    return waiting;
  });
}
const sellTogether = (works: () => readonly Promise<StoredAnswer | null>[]) =>
  sharing(() => sell({ key: newPayment().key, token: randomUUID() }), works);

const failsAfter =
  (complete: Complete): Complete =>
  async (transaction) => {
    await complete(transaction);
    throw new Error("this sale fails");
  };

interface LogRow {
  readonly idx: string;
  readonly id: string;
  readonly document: string;
  readonly sha256: string;
  /** The transaction and the statement that wrote it. */
  readonly xmin: string;
  readonly cmin: string;
}
const logRows = async () =>
  (await reading.query<LogRow>("SELECT idx, id, document, sha256, xmin, cmin FROM verdict ORDER BY idx")).rows;
const rowOf = async ({ key }: Settled) => (await logRows()).find(({ id }) => id === verdictId(key));
const paymentOf = async ({ key }: Settled) =>
  (await reading.query("SELECT state, response, xmin FROM payment WHERE nonce = $1", [binary(key.nonce)])).rows[0];
/** The payments' states, and how many of their verdicts are in the log. */
const stored = async (sales: readonly Settled[]) => {
  const rows = await Promise.all(sales.map(rowOf));
  return [
    await Promise.all(sales.map(async (sale) => (await paymentOf(sale)).state)),
    rows.filter((row) => row !== undefined).length,
  ];
};

/** No gap, each names the hash of the one before, and every answer is its verdict's document. */
async function expectOneChain(sales: readonly Settled[]): Promise<void> {
  const rows = await logRows();
  expect(rows.map(({ document }) => JSON.parse(document))).toMatchObject(
    rows.map((_, place) => ({ index: place + 1, previousSha256: rows[place - 1]?.sha256 ?? null })),
  );
  expect(rows.map(({ idx, sha256: hash }) => [idx, hash])).toEqual(
    rows.map(({ document }, place) => [String(place + 1), sha256(document)]),
  );
  for (const sale of sales) {
    const { state, response } = await paymentOf(sale);
    expect([state, response.toString()]).toEqual(["fulfilled", (await rowOf(sale))?.document]);
  }
}

describe("verdicts that share a transaction", () => {
  let sales: Settled[];
  beforeEach(async () => {
    sales = await settledPayments(5);
  });

  test("are written by one statement, in the order they came, with their answers and payments", async () => {
    await sellTogether(() => sales.map((sale) => sell(sale)));
    const rows = (await logRows()).slice(-5);
    expect(rows.map(({ id }) => id)).toEqual(sales.map(({ key }) => verdictId(key)));
    expect(new Set(rows.map(({ xmin, cmin }) => `${xmin} ${cmin}`)).size).toBe(1);
    const payments = await Promise.all(sales.map(paymentOf));
    expect(payments.map(({ xmin }) => xmin)).toEqual(rows.map(({ xmin }) => xmin));
    await expectOneChain(sales);
  });

  test("leave no gap where one is in the log already: that one is sold as it stands", async () => {
    const [, known] = sales as [Settled, Settled];
    const verdict = newVerdict(verdictId(known.key), "written before its payment was");
    await here.store.inTurn((transaction) => here.store.append(verdict, transaction));
    await sellTogether(() => sales.map((sale) => sell(sale)));
    expect((await rowOf(known))?.document).toContain("written before its payment was");
    await expectOneChain(sales);
  });

  test("may be one verdict twice: both get the one that is written", async () => {
    const id = verdictId((await settledPayment()).key);
    const write = (text: string) =>
      here.store.inTurn((transaction) => here.store.append(newVerdict(id, text), transaction));
    const none = () => here.store.inTurn(async () => null);
    const both = await sharing(none, () => [write("one"), write("other")]);
    const [one, same] = both.map((written) => written.status === "fulfilled" && written.value.document);
    expect(one).toContain("one");
    expect(same).toBe(one);
    await expectOneChain([]);
  });

  test.each<[string, (sale: Settled) => Complete]>([
    ["whose work fails", () => () => Promise.reject(new Error("this sale fails"))],
    ["that fails after it was appended", ({ key }) => failsAfter(selling(newVerdict(verdictId(key))))],
    ["whose row PostgreSQL refuses", ({ key }) => selling(newVerdict(verdictId(key), "\0"))],
  ])("lose only the one %s", async (_, failing) => {
    const [, bad] = sales as [Settled, Settled];
    const good = sales.filter((sale) => sale !== bad);
    const sold = await sellTogether(() =>
      sales.map((sale) => (sale === bad ? sell(bad, { complete: failing(bad) }) : sell(sale))),
    );
    expect(sold.map(({ status }) => status)).toEqual(sales.map((sale) => (sale === bad ? "rejected" : "fulfilled")));
    expect([(await paymentOf(bad)).state, await rowOf(bad)]).toEqual(["settled", undefined]);
    await expectOneChain(good);
  });

  test("lose nothing to one that another process has taken over", async () => {
    const [, lost] = sales as [Settled, Settled];
    const sold = await sellTogether(() =>
      sales.map((sale) => sell(sale === lost ? { ...lost, token: randomUUID() } : sale)),
    );
    expect(sold.map((one) => one.status === "fulfilled" && one.value !== null)).toEqual(
      sales.map((sale) => sale !== lost),
    );
    expect([(await paymentOf(lost)).state, await rowOf(lost)]).toEqual(["settled", undefined]);
    await expectOneChain(sales.filter((sale) => sale !== lost));
  });

  test("are stored with their payments or not at all where the connection dies before the commit", async () => {
    await owner.query("SELECT pg_advisory_lock(1)");
    const selling = sellTogether(() => sales.map((sale) => sell(sale)));
    const dying = await blocked("COMMIT");
    await owner.query("SELECT pg_terminate_backend($1)", [dying]);
    // The first of them stands before its own commit now.
    await blocked("COMMIT", { not: dying });
    expect(await stored(sales)).toEqual([sales.map(() => "settled"), 0]);
    await owner.query("SELECT pg_advisory_unlock(1)");
    expect((await selling).map(({ status }) => status)).toEqual(sales.map(() => "fulfilled"));
    await expectOneChain(sales);
  });
});

test("two processes write one chain, in whichever order their turns come", async () => {
  const sales = await settledPayments(60);
  const sold = await Promise.all(sales.map((sale, at) => sell(sale, { by: at % 2 === 0 ? here : elsewhere })));
  expect(sold).not.toContain(null);
  await expectOneChain(sales);
});
