import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { connect, inTransaction } from "../../../api/platform/db/connection.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { chargedOnce } from "../../support/payments/on-chain.ts";
import { type Answer, post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { connectOwner, freshDatabase } from "../../support/service/database.ts";
import { startBlackHole } from "../../support/service/database-link.ts";
import { startService } from "../../support/service/service.ts";

/** A quarter of a minute shows as much as a whole one, because every limit is shorter. */
const HOLE_MS = Number(process.env.BLACK_HOLE_SECONDS ?? 15) * 1000;
const ANSWERED_WITHIN_MS = 10_000;
/** Pending work may have to wait until its lease of 30 s ends. */
const RECOVERED_WITHIN_MS = 15_000 + Math.max(0, 30_000 - HOLE_MS);
const CROWD = 24;

const chain = await forFile(startTestChain());
const database = await freshDatabase();
const owner = await forFile(connectOwner(database));
const hole = await forFile(startBlackHole(database.apiUrl));
const service = await forFile(startService({ chain, database, config: { databaseUrl: hole.url } }));

const pay = (signed: Signed): Promise<Answer> => post(`${service.url}/test/basic`, v2(signed));
const timed = async <T>(work: Promise<T>): Promise<{ answer: T; ms: number }> => {
  const began = performance.now();
  return { answer: await work, ms: performance.now() - began };
};
const someSigned = async (): Promise<Signed> => signPayment(await newPayer(chain), { validBefore: inAnHour() });
const inAnHour = () => BigInt(Math.floor(Date.now() / 1000) + 3_600);

const LEFT_BEHIND = `SELECT state, query FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%' AND now() - state_change > interval '11 s'
  UNION ALL SELECT 'waits', locktype FROM pg_locks WHERE database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND NOT granted`;

/** Holds a lock in a transaction when the database becomes unreachable, and never learns the transaction's outcome. */
async function holdLock(swallowed: () => void): Promise<void> {
  const pool = connect(hole.url, 2);
  const lost = inTransaction(pool, async (client) => {
    await client.query("SELECT pg_advisory_xact_lock(1)");
    hole.swallow();
    swallowed();
    await client.query("SELECT 1");
  });
  // No rollback is sent on a connection that did not respond.
  const { ms } = await timed(expect(lost).rejects.toThrow(/Query read timeout/));
  expect(ms).toBeLessThan(ANSWERED_WITHIN_MS);
  await pool.end();
}

test.concurrent(
  `While PostgreSQL is unreachable for ${HOLE_MS / 1000} s, requests get a 503 within 10 s, and afterwards everything works without a double charge or a leftover lock`,
  async () => {
    const known = await someSigned();
    const crowd: Signed[] = [];
    while (crowd.length < CROWD) crowd.push(await someSigned());
    const first = await pay(known);
    expect(first.status).toBe(200);

    // Some requests are in the middle of their work.
    const answering = crowd.map((signed) => timed(pay(signed)));
    await sleep(150);
    let holding = Promise.resolve();
    await new Promise<void>((swallowed) => {
      holding = holdLock(swallowed);
    });
    const until = Date.now() + HOLE_MS;
    while (Date.now() < until) {
      const asked = await Promise.all([timed(pay(known)), timed(pay(await signPayment(await newPayer(chain))))]);
      for (const { answer, ms } of asked) {
        expectProblem(answer, 503, "payment_pending");
        expect(ms).toBeLessThan(ANSWERED_WITHIN_MS);
      }
      const read = await timed(send(`${service.url}/verify?wallet=${known.authorization.from}`));
      expectProblem(read.answer, 503, "not_available");
      expect(read.ms).toBeLessThan(ANSWERED_WITHIN_MS);
      const status = await timed(send(`${service.url}/status`));
      expect(status.answer.body).toMatchObject({ ok: false, database: { ok: false } });
      expect(status.ms).toBeLessThan(ANSWERED_WITHIN_MS);
    }
    for (const { answer, ms } of await Promise.all(answering)) {
      if (answer.status !== 200) expectProblem(answer, 503, "payment_pending");
      // A payment that was being submitted also waits for the chain, as always, and for one more statement.
      expect(ms).toBeLessThan(3 * ANSWERED_WITHIN_MS);
    }

    hole.restore();
    const back = performance.now();
    await holding;
    await owner.query("BEGIN; SELECT pg_advisory_xact_lock(1); COMMIT");
    const replay = await pay(known);
    expect([replay.status, replay.text]).toEqual([200, first.text]);
    expect((await pay(await someSigned())).status).toBe(200);
    const again = async (signed: Signed): Promise<Answer> => {
      const answer = await pay(signed);
      if (answer.status !== 503 || performance.now() - back > 2 * RECOVERED_WITHIN_MS) return answer;
      await sleep(500);
      return again(signed);
    };
    const answers = await Promise.all(crowd.map(again));
    expect(answers.map(({ status }) => status)).toEqual(crowd.map(() => 200));
    expect(performance.now() - back).toBeLessThan(RECOVERED_WITHIN_MS);
    for (const signed of [known, ...crowd]) await chargedOnce(chain, signed);
    expect((await owner.query(LEFT_BEHIND)).rows).toEqual([]);
    // The status is cached for two seconds.
    const status = async () => (await send(`${service.url}/status`)).body.database as { ok: boolean };
    await eventually(async () => (await status()).ok, true, 15_000);
  },
  HOLE_MS + 90_000,
);

test.concurrent("An unresponsive connection is dropped and not reused, while the server cancels a slow statement earlier", async () => {
  const hole = await forFile(startBlackHole(database.apiUrl));
  const near = await forFile(connect(database.apiUrl, 1));
  const slow = expect(near.query("SELECT pg_sleep(9)")).rejects.toThrow(/canceling statement due to statement timeout/);
  const pool = connect(hole.url, 1);
  const pids = async () => (await pool.query<{ pid: number }>("SELECT pg_backend_pid() AS pid")).rows[0]?.pid;
  const first = await pids();
  hole.swallow();
  const { ms } = await timed(expect(pids()).rejects.toThrow(/Query read timeout/));
  expect(ms).toBeLessThan(ANSWERED_WITHIN_MS);
  hole.restore();
  expect(await pids()).not.toBe(first);
  await pool.end();
  await slow;
});

test("A server notices within 30 seconds that an idle client is gone", async () => {
  const pool = await forFile(connect(database.apiUrl, 1));
  const text = "SELECT name, setting FROM pg_settings WHERE name LIKE 'tcp_keepalives%'";
  const { rows } = await pool.query<{ name: string; setting: string }>(text);
  const of = (name: string) => Number(rows.find((row) => row.name === `tcp_keepalives_${name}`)?.setting);
  expect(of("idle") + of("interval") * of("count")).toBeLessThan(30);
  expect(of("idle") * of("interval") * of("count")).toBeGreaterThan(0);
});
