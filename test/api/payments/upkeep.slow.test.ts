import { randomUUID } from "node:crypto";
import type pg from "pg";
import type { LocalAccount } from "viem";
import { beforeEach, describe, expect, test } from "vitest";
import { createJournal } from "../../../api/payments/journal/journal-store.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { createSeal } from "../../../api/platform/db/seal.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { expectPaymentRequired, expectProblem } from "../../support/payments/expectations.ts";
import { startFacilitator } from "../../support/payments/facilitator.ts";
import { newPayment, WRITES } from "../../support/payments/journal-rows.ts";
import { chargedOnce, nothingCharged } from "../../support/payments/on-chain.ts";
import { type Answer, post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment, unixNow } from "../../support/payments/signing.ts";
import { binary, eachPayment, freshDatabase } from "../../support/service/database.ts";
import { startService, type TestService } from "../../support/service/service.ts";

const soon = { timeout: 30_000, interval: 100 };

let payer: LocalAccount;
let signed: Signed;

const begin = (more: Partial<Parameters<typeof startService>[0]> = {}) =>
  startService({ chain, database, config: { facilitator: { remote: facilitator.url } }, ...more });

const chain = await forFile(startTestChain({ slotsInAnEpoch: 3 }));
// anvil knows the state of loaded blocks only at its head, so the finalized block must be one that it mined.
await chain.mine(10);
const [facilitator, database] = await Promise.all([forFile(startFacilitator(chain)), freshDatabase()]);
const service = await forFile(begin());

beforeEach(async () => {
  payer = await newPayer(chain);
  signed = await signPayment(payer);
});

const pay = (): Promise<Answer> => post(`${service.url}/test/basic`, v2(signed));
const ask = async <T extends object>(text: string, values: unknown[] = []): Promise<T[]> =>
  withClient(database.ownerUrl, async (client: pg.Client) => (await client.query<T>(text, values)).rows);
const row = async () => {
  const text = `SELECT state, reason, final_at IS NOT NULL AS final, encrypted_signature IS NOT NULL AS sealed FROM payment WHERE nonce = $1`;
  return (await ask(text, [binary(signed.authorization.nonce)]))[0];
};
const unresolved = async () => (await send(`${service.url}/status`)).body.payments;

describe("The encrypted signature", () => {
  test("A signature is stored encrypted until its settlement is final", async () => {
    expect((await pay()).status).toBe(200);
    expect(await row()).toEqual({ state: "fulfilled", reason: null, final: false, sealed: true });
    await chain.mine(8);
    await expect.poll(row, soon).toEqual({ state: "fulfilled", reason: null, final: true, sealed: false });
    await chargedOnce(chain, signed);
  });
});

/** Writes payments in settling, received this many seconds ago, to a new database and starts a service on it. */
async function withSettling(ages: readonly number[], use: (found: TestService) => Promise<void>): Promise<void> {
  const own = await freshDatabase();
  const pool = connect(own.apiUrl, 2);
  const journal = createJournal(pool, createSeal(Buffer.alloc(32, 3)));
  for (const age of ages) {
    const receivedAt = new Date(Date.now() - age * 1_000);
    const [payment, token] = [newPayment({ validBefore: unixNow() + 86_400n, receivedAt }), randomUUID()];
    await journal.insert(payment, token);
    await journal.write(payment.key, token, { ...WRITES.leave, kept: payment });
    await journal.release(payment.key, token, false);
  }
  await pool.end();
  const found = await begin({ database: own });
  try {
    await use(found);
  } finally {
    await found.stop();
  }
}

test("A payment that waits for two minutes is logged as a warning, and /status reports its age", async () => {
  const alerts = ({ logged }: TestService) =>
    logged.flatMap((line) => {
      const { level, msg, unresolved, oldest_seconds } = JSON.parse(line);
      return msg === "payments are waiting for their outcome" ? [{ level, unresolved, oldest_seconds }] : [];
    });
  const statusOf = async ({ url }: TestService) => (await send(`${url}/status`)).body.payments;
  await withSettling([125, 60], async (found) => {
    await expect.poll(() => alerts(found), soon).toEqual([{ level: 40, unresolved: 2, oldest_seconds: near(125) }]);
    expect(await statusOf(found)).toEqual({ unresolved: 2, oldest_unresolved_seconds: near(125) });
  });
  await withSettling([8], async (found) => {
    expect(await statusOf(found)).toEqual({ unresolved: 1, oldest_unresolved_seconds: near(8) });
    const looked = async () => found.logged.some((line) => line.includes('"command":"look"'));
    await expect.poll(looked, soon).toBe(true);
    expect(alerts(found)).toEqual([]);
  });
});

/** Matches this many seconds, or up to 30 more on a slow machine. */
const near = (seconds: number) => expect.toSatisfy((n: number) => n >= seconds && n < seconds + 30, `about ${seconds}`);

// This test advances the chain's clock by five minutes, so it comes last.
test("A payment without retries is never submitted again, has its age in /status, and becomes void once it cannot settle", async () => {
  facilitator.treat(signed, (_, answer) => answer.writeHead(500).end());
  expect(await unresolved()).toEqual({ unresolved: 0, oldest_unresolved_seconds: null });
  expectProblem(await pay(), 503, "payment_pending");
  const oldest = async () => ((await unresolved()) as { oldest_unresolved_seconds: number }).oldest_unresolved_seconds;
  const first = await oldest();
  expect(first).toBeGreaterThanOrEqual(8);
  await expect.poll(oldest, soon).toBeGreaterThanOrEqual(first + 3);
  expect(await unresolved()).toMatchObject({ unresolved: 1 });
  // Lookups become less frequent. This makes the payment due now.
  const soonLooked = async <T>(read: () => Promise<T>): Promise<T> => {
    await ask(eachPayment("next_attempt_at = now()", "next_attempt_at > now()"));
    return read();
  };
  const takes = async () => Number((await ask<{ n: number }>("SELECT max(attempts) AS n FROM payment"))[0]?.n);
  await expect.poll(() => soonLooked(takes), soon).toBeGreaterThanOrEqual(3);
  expect(await row()).toEqual({ state: "settling", reason: null, final: false, sealed: true });
  expect(facilitator.handed.get(signed.authorization.nonce)).toBe(1);

  await chain.increaseTime(300);
  await chain.mine(8);
  const expired = { state: "void", reason: "expired", final: false, sealed: false };
  await expect.poll(() => soonLooked(row), soon).toEqual(expired);
  expect(await unresolved()).toEqual({ unresolved: 0, oldest_unresolved_seconds: null });
  expect(expectPaymentRequired(await pay())).toMatch(/expired before it settled/);
  expect(facilitator.handed.get(signed.authorization.nonce)).toBe(1);
  await nothingCharged(chain, payer);
});
