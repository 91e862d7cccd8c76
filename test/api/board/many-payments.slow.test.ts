import { beforeAll, expect, test } from "vitest";
import { createTotalsReader } from "../../../api/board/store.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { fillJournal } from "../../support/payments/journal-rows.ts";
import { send } from "../../support/payments/requests.ts";
import { connectOwner, freshDatabase, plansOf } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

const PAYMENTS = 1_000_000;
const CERTIFICATES = 200_000;
const WALLETS = 40_000;

const database = await freshDatabase();
const owner = await forFile(connectOwner(database));
const pool = await forFile(connect(database.apiUrl, 1));
const chain = await forFile(startTestChain());

/** The rows that the triggers and the job would write. */
const COUNTED = `
  INSERT INTO certificate_tally (wallet, product, passed, failed, pass_until)
    SELECT wallet, product, count(*), 0, max(valid_until) FROM certificate GROUP BY 1, 2;
  INSERT INTO certificate_day_wallet SELECT day, wallet FROM (SELECT (issued_at AT TIME ZONE 'UTC')::date AS day, wallet,
    row_number() OVER (PARTITION BY (issued_at AT TIME ZONE 'UTC')::date) AS place FROM certificate) c WHERE place <= 5
    ON CONFLICT DO NOTHING;
  INSERT INTO counter (name, part, count, amount)
    SELECT 'payment', '8453', ${PAYMENTS}, ${PAYMENTS} * 250000::numeric
    UNION ALL SELECT 'tested', '', ${WALLETS}, 0
    UNION ALL SELECT name, 'basic', count, 0 FROM (VALUES ('wallets', ${WALLETS}), ('passed', ${CERTIFICATES}), ('passed_wallets', ${WALLETS})) v (name, count)
    UNION ALL SELECT 'day', to_char(issued_at AT TIME ZONE 'UTC', 'YYYY-MM-DD'), count(*), 0 FROM certificate GROUP BY 2
    UNION ALL SELECT 'certified', '', ${WALLETS}, 0
    UNION ALL SELECT 'certified', to_char(pass_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI'), -count(*), 0 FROM certificate_tally GROUP BY 2`;

const ISSUED = `INSERT INTO certificate (id, product, test_version, result, level, wallet, checks, detected, issued_at, valid_until,
    chain, asset, nonce, tx, block_number, amount, pay_to)
  SELECT lpad(to_hex(n), 16, '0'), 'basic', 1, 'pass', 'basic', decode(lpad(to_hex(n % ${WALLETS}), 40, '0'), 'hex'), '{}', '{}',
    at, at + interval '30 days', 8453, '\\x833589fcd6edb6e08f4c7c32d4f71b54bda02913', decode(lpad(to_hex(n), 64, '0'), 'hex'),
    int8send(n), n, 250000, '\\x00000000000000000000000000000000c0ffee01'
  FROM generate_series(1, ${CERTIFICATES}) n, LATERAL (SELECT now() - n % 60 * interval '1 day') AS issued (at)`;

beforeAll(async () => {
  await fillJournal(owner, { finished: PAYMENTS, stuck: 1_000 });
  await owner.query(`SET session_replication_role = replica; ${ISSUED}; RESET session_replication_role; ${COUNTED}`);
  await owner.query("VACUUM (ANALYZE) certificate, certificate_tally, counter");
}, 1_200_000);

test("The statistics scan no table that grows with payments or certificates", async () => {
  const plans = await plansOf(database, (on) => createTotalsReader(on).totals(new Date(), new Date()));
  const scans = plans.flatMap((plan) => plan.scans);
  expect(scans.length).toBeGreaterThan(5);
  expect(
    scans.filter((scan) => /^(Seq|Parallel).* (payment|certificate|certificate_tally|verdict)$/.test(scan)),
  ).toEqual([]);
  expect(plans.reduce((sum, { buffers }) => sum + buffers, 0)).toBeLessThan(1_500);
});

test("A count takes less than 50 ms", async () => {
  const reader = createTotalsReader(pool);
  const taken: number[] = [];
  for (let count = 0; count < 5; count++) {
    const start = performance.now();
    const totals = await reader.totals(new Date(), new Date(Date.now() - 29 * 86_400_000));
    taken.push(performance.now() - start);
    expect(totals.payments).toEqual([
      { network: "eip155:8453", settled: PAYMENTS, volume: 250_000n * BigInt(PAYMENTS) },
    ]);
    expect(totals.wallets.tested).toBe(WALLETS);
  }
  // The first count also connects, parses, and plans, and another program may delay any of them.
  expect(Math.min(...taken)).toBeLessThan(50);
});

test("The statistics and the home page are served within 50 ms", async () => {
  const service = await startService({ chain, database, jobs: false });
  try {
    const timed = async (path: string, headers = {}): Promise<number> => {
      const start = performance.now();
      expect((await send(`${service.url}${path}`, { headers })).status).toBe(200);
      return performance.now() - start;
    };
    for (const [path, accept] of [
      ["/stats", "application/json"],
      ["/stats", "text/html"],
      ["/", "text/html"],
    ] as const) {
      const taken: number[] = [];
      for (let time = 0; time < 4; time++) taken.push(await timed(path, { accept }));
      console.info(`${path} as ${accept}: ${taken.map((ms) => ms.toFixed(1)).join(", ")} ms`);
      expect(Math.min(...taken)).toBeLessThan(50);
    }
  } finally {
    await service.stop();
  }
});
