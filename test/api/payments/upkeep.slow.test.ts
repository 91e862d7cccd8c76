import { randomUUID } from "node:crypto";
import type pg from "pg";
import type { LocalAccount } from "viem";
import { beforeEach, describe, expect, test } from "vitest";
import { createJournal } from "../../../api/payments/journal/journal-store.ts";
import type { Journal } from "../../../api/payments/journal.ts";
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
import { binary, eachPayment, freshDatabase, type TestDatabase } from "../../support/service/database.ts";
import { startService, type TestService } from "../../support/service/service.ts";

const soon = { timeout: 30_000, interval: 100 };

let payer: LocalAccount;
let signed: Signed;

const begin = (more: Partial<Parameters<typeof startService>[0]> = {}) =>
  startService({ chain, database, config: { facilitator: { remote: facilitator.url } }, ...more });

const chain = await forFile(startTestChain({ slotsInAnEpoch: 3 }));
// anvil knows the state of loaded blocks only at its head: let the finalized one be one that it has mined.
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

describe("a signature is kept, sealed, no longer than it may be needed", () => {
  test("until its settlement is final", async () => {
    expect((await pay()).status).toBe(200);
    expect(await row()).toEqual({ state: "fulfilled", reason: null, final: false, sealed: true });
    await chain.mine(8);
    await expect.poll(row, soon).toEqual({ state: "fulfilled", reason: null, final: true, sealed: false });
    await chargedOnce(chain, signed);
  });

  test("and not once the payment is refused", async () => {
    payer = await newPayer(chain, 0n);
    signed = await signPayment(payer);
    expectPaymentRequired(await pay());
    expect(await row()).toEqual({ state: "void", reason: "refused", final: false, sealed: false });
  });
});

/** Rows as the gate leaves them, in a database of the test's own, and a service that finds them there. */
async function withRows<T>(
  rows: readonly Row[],
  use: (found: TestService, own: TestDatabase) => Promise<T>,
): Promise<T> {
  const own = await freshDatabase();
  const pool = connect(own.apiUrl, 2);
  const journal = createJournal(pool, createSeal(Buffer.alloc(32, 3)));
  for (const one of rows) await leave(journal, one);
  await pool.end();
  const found = await begin({ database: own });
  try {
    return await use(found, own);
  } finally {
    await found.stop();
  }
}

interface Row {
  readonly state: "received" | "settling";
  readonly ageSeconds?: number;
  readonly validBefore?: bigint;
  readonly leased?: boolean;
  /** What the test calls it. */
  readonly route?: string;
}

async function leave(journal: Journal, { state, ageSeconds = 0, validBefore, leased = false, route }: Row) {
  const receivedAt = new Date(Date.now() - ageSeconds * 1_000);
  const window = { validBefore: validBefore ?? unixNow() + 86_400n };
  const payment = newPayment({ ...window, receivedAt, ...(route ? { route } : {}) });
  const [{ key }, token] = [payment, randomUUID()];
  await journal.insert(payment, token);
  if (state === "settling") await journal.write(key, token, { ...WRITES.leave, kept: payment });
  if (!leased) await journal.release(key, token, false);
}

const HOUR = 3_600n;

test("a payment that was never submitted is pruned an hour after its window; no other one ever is", async () => {
  const now = unixNow();
  const rows: readonly Row[] = [
    { state: "received", route: "over for an hour", validBefore: now - HOUR - 5n },
    { state: "received", route: "over for almost an hour", validBefore: now - HOUR + 60n },
    { state: "received", route: "a request is at it", validBefore: now - HOUR - 5n, leased: true },
    { state: "received", route: "not over" },
    { state: "settling", route: "submitted", validBefore: now - HOUR - 5n, leased: true },
  ];
  await withRows(rows, async (_, own) => {
    const kept = () =>
      withClient(own.ownerUrl, async (client) =>
        (await client.query<{ route: string }>("SELECT route FROM payment")).rows.map(({ route }) => route).sort(),
      );
    const others = rows.slice(1).map(({ route }) => route);
    await expect.poll(kept, soon).toEqual(others.sort());
  });
});

test("a payment that waits for two minutes is an alert in the log, and /status says its age", async () => {
  const alerts = ({ logged }: TestService) =>
    logged.flatMap((line) => {
      const { level, msg, unresolved, oldest_seconds } = JSON.parse(line);
      return msg === "payments are waiting for their outcome" ? [{ level, unresolved, oldest_seconds }] : [];
    });
  const statusOf = async ({ url }: TestService) => (await send(`${url}/status`)).body.payments;
  const settling = (ageSeconds: number): Row => ({ state: "settling", ageSeconds });
  await withRows([settling(125), settling(60)], async (found) => {
    await expect.poll(() => alerts(found), soon).toEqual([{ level: 40, unresolved: 2, oldest_seconds: near(125) }]);
    expect(await statusOf(found)).toEqual({ unresolved: 2, oldest_unresolved_seconds: near(125) });
  });
  await withRows([settling(8)], async (found) => {
    expect(await statusOf(found)).toEqual({ unresolved: 1, oldest_unresolved_seconds: near(8) });
    const looked = async () => found.logged.some((line) => line.includes('"command":"look"'));
    await expect.poll(looked, soon).toBe(true);
    expect(alerts(found)).toEqual([]);
  });
});

/** That many seconds, or a few more on a slow machine. */
const near = (seconds: number) => expect.toSatisfy((n: number) => n >= seconds && n < seconds + 30, `about ${seconds}`);

// The chain never goes back: what comes after this lives five minutes later.
test("a payment that nobody retries is never submitted again; /status says how old it is; once it can never settle it is void", async () => {
  facilitator.treat(signed, (_, answer) => answer.writeHead(500).end());
  expect(await unresolved()).toEqual({ unresolved: 0, oldest_unresolved_seconds: null });
  expectProblem(await pay(), 503, "payment_pending");
  const oldest = async () => ((await unresolved()) as { oldest_unresolved_seconds: number }).oldest_unresolved_seconds;
  const first = await oldest();
  expect(first).toBeGreaterThanOrEqual(8);
  await expect.poll(oldest, soon).toBeGreaterThanOrEqual(first + 3);
  expect(await unresolved()).toMatchObject({ unresolved: 1 });
  // It looks less and less often; here it is always due.
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
