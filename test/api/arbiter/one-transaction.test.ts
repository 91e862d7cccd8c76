import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { verdictId } from "../../../api/arbiter/request.ts";
import { createVerdictStore, type NewVerdict, type SignedVerdict } from "../../../api/arbiter/store.ts";
import { createJournal } from "../../../api/payments/journal/journal-store.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { createSeal } from "../../../api/platform/db/seal.ts";
import type { Completion } from "../../../api/platform/http/answer.ts";
import type { PaymentKey } from "../../../api/platform/http/route.ts";
import { sha256 } from "../../support/arbiter/rows.ts";
import { forFile } from "../../support/for-file.ts";
import { apply, newPayment, PATHS } from "../../support/payments/journal-rows.ts";
import { binary, connectOwner, freshDatabase } from "../../support/service/database.ts";

const PATIENT = { timeout: 20_000, interval: 10 };

const database = await freshDatabase();
const owner = await forFile(connectOwner(database));

/** The stores with which one process completes sales. */
async function startProcess(connections = 4) {
  const pool = await forFile(connect(database.apiUrl, connections));
  return { journal: createJournal(pool, createSeal(Buffer.alloc(32, 3))), store: createVerdictStore(pool) };
}
// Commits of verdicts wait while a test holds this lock.
await owner.query(`
  CREATE FUNCTION wait_at_commit() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END $$;
  CREATE CONSTRAINT TRIGGER wait_at_commit AFTER INSERT ON verdict
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait_at_commit()`);
const here = await startProcess();
const elsewhere = await startProcess();

const newVerdict = (id: string, text = id): SignedVerdict => ({
  id,
  supersedes: null,
  request: {
    category: "payload-hash",
    conditions: {},
    conditionsSha256: sha256(id),
    dealRef: null,
    parties: null,
    policyVersion: 1,
  },
  outcome: "release",
  issuedAt: new Date(),
  document: text,
  sha256: sha256(text),
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

const answerWith = ({ document }: SignedVerdict) => ({ status: 200, body: Buffer.from(document), location: null });

type Ending = (verdict: SignedVerdict) => Completion;
const plain: Ending = (verdict) => ({ answer: answerWith(verdict), writes: [here.store.adding(verdict)] });
/** The completion of a verdict that decides one transfer. */
const deciding: Ending = (verdict) => {
  const decided: NewVerdict = {
    ...verdict,
    transfer: {
      network: "eip155:8453",
      transaction: `0x${sha256(verdict.id)}`,
      logIndex: 0,
      decidedBefore: async () => verdict,
    },
  };
  return { complete: async (transaction) => answerWith(await here.store.add(decided, transaction)) };
};
const ENDINGS: readonly [string, Ending][] = [
  ["A verdict", plain],
  ["A verdict that decides a transfer", deciding],
];

const sell = ({ key, token }: Settled, ending: Ending, { by = here, text = verdictId(key) } = {}) =>
  by.journal.complete(key, token, { completion: ending(newVerdict(verdictId(key), text)), settlement: null });

/** The payment's state, the verdict, and its position in the log's queue, each with the transaction that wrote it. */
async function storedOf({ key }: Settled) {
  const one = async (text: string, value: unknown) => (await owner.query(text, [value])).rows[0] ?? null;
  const id = verdictId(key);
  return {
    payment: await one("SELECT state, response, xmin FROM payment WHERE nonce = $1", binary(key.nonce)),
    verdict: await one("SELECT document, xmin FROM verdict WHERE id = $1", id),
    queued: await one("SELECT xmin FROM log_pending WHERE type = 'verdict' AND ref = $1", id),
    transfer: await one("SELECT xmin FROM verdict_transfer WHERE verdict = $1", id),
  };
}

async function expectStored(sale: Settled): Promise<void> {
  const { payment, verdict } = await storedOf(sale);
  expect([payment.state, payment.response.toString()]).toEqual(["fulfilled", verdict?.document]);
}
const NOTHING = { payment: { state: "settled" }, verdict: null, queued: null, transfer: null };

test.each(ENDINGS)(
  "%s is stored in one transaction with its payment's response and its position in the log's queue",
  async (_, ending) => {
    const sale = await settledPayment();
    await sell(sale, ending);
    await expectStored(sale);
    const { payment, verdict, queued, transfer } = await storedOf(sale);
    expect([verdict.xmin, queued.xmin]).toEqual([payment.xmin, payment.xmin]);
    expect(transfer?.xmin).toBe(ending === deciding ? payment.xmin : undefined);
  },
);

test.each(ENDINGS)("%s is stored only by the process that holds the payment", async (_, ending) => {
  const sale = await settledPayment();
  const late = { ...sale, token: randomUUID() };
  const attempts = [late, sale, late].map((one, at) => sell(one, ending, { by: at % 2 ? here : elsewhere }));
  const sold = await Promise.all(attempts);
  expect(sold.map((answer) => answer !== null)).toEqual([false, true, false]);
  await expectStored(sale);
});

test.each(ENDINGS)(
  "%s that PostgreSQL rejects is rolled back completely, and all others are stored",
  async (_, ending) => {
    const sales = await settledPayments(5);
    const [, bad] = sales as [Settled, Settled];
    const sold = await Promise.allSettled(
      sales.map((sale) => sell(sale, ending, sale === bad ? { text: "no \0 in PostgreSQL" } : {})),
    );
    expect(sold.map(({ status }) => status)).toEqual(sales.map((sale) => (sale === bad ? "rejected" : "fulfilled")));
    expect(await storedOf(bad)).toMatchObject(NOTHING);
    for (const sale of sales.filter((one) => one !== bad)) await expectStored(sale);
  },
);

test.each(ENDINGS)(
  "%s is not stored if the connection dies before the commit, and the next attempt stores it",
  async (_, ending) => {
    const sale = await settledPayment();
    await owner.query("SELECT pg_advisory_lock(1)");
    const lost = expect(sell(sale, ending)).rejects.toThrow();
    const waiting = async () =>
      (
        await owner.query<{ pid: number }>(
          "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'",
        )
      ).rows;
    await expect.poll(waiting, PATIENT).toHaveLength(1);
    await owner.query("SELECT pg_terminate_backend($1)", [(await waiting())[0]?.pid]);
    await lost;
    await owner.query("SELECT pg_advisory_unlock(1)");
    expect(await storedOf(sale)).toMatchObject(NOTHING);
    await sell(sale, ending);
    await expectStored(sale);
  },
);

test("A rejected verdict leaves the connection usable for the next one", async () => {
  const by = await startProcess(1);
  const [plainly, bad, next] = (await settledPayments(3)) as [Settled, Settled, Settled];
  await sell(plainly, plain, { by });
  await expect(sell(bad, deciding, { by, text: "no \0 in PostgreSQL" })).rejects.toThrow();
  await sell(next, deciding, { by });
  await expectStored(next);
});
