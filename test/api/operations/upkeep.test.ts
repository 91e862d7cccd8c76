import { beforeEach, describe, expect, test } from "vitest";
import { connect } from "../../../api/platform/db/connection.ts";
import { createLookupBudget } from "../../../api/platform/db/lookup-budget.ts";
import { createJobWatch, type JobWatch } from "../../../api/platform/jobs/job-watch.ts";
import { forFile } from "../../support/for-file.ts";
import { connectOwner, freshDatabase } from "../../support/service/database.ts";
import { prune as pruneAll } from "../../support/service/service.ts";

const database = await freshDatabase();
const owner = await forFile(connectOwner(database));
const pool = await forFile(connect(database.apiUrl));
const prune = () => pruneAll(pool);

const left = async (text: string) => (await owner.query({ text, rowMode: "array" })).rows.flat().map(Number);
const WALLET = "decode(lpad(to_hex(n), 40, '0'), 'hex')";

test("Lookups unused for a month are deleted in batches of 1,000, except those claimed by a process", async () => {
  await owner.query(`INSERT INTO inflow (wallet, basis, inflows, claimed_until, used_at)
    SELECT ${WALLET}, 'a', '{}', now() + make_interval(secs => CASE WHEN n > 1300 THEN 60 ELSE -60 END), now() - make_interval(days => 31)
    FROM generate_series(1, 1302) AS n`);
  await owner.query(`INSERT INTO inflow (wallet, basis, inflows, claimed_until, used_at)
    SELECT ${WALLET}, 'a', '{}', now(), now() - make_interval(days => 29) FROM generate_series(2001, 2003) AS n`);
  expect([await prune(), await prune(), await prune()]).toEqual([1_000, 300, 0]);
  expect(await left("SELECT count(*) FROM inflow")).toEqual([5]);
});

test("Snapshots are kept for a day, marks for 30 days, hourly request counts for a day, and gas for a week", async () => {
  await owner.query(`INSERT INTO score_lookup SELECT ${WALLET}, 'a', 1, '{}', now() - make_interval(hours => n)
    FROM unnest(ARRAY[0, 23, 25, 99]) AS n`);
  await owner.query(`INSERT INTO lookup_mark SELECT n, decode(repeat('ab', 32), 'hex'), decode(repeat('cd', 32), 'hex'),
    now() - make_interval(days => n) FROM unnest(ARRAY[0, 29, 31]) AS n`);
  await owner.query(`INSERT INTO lookup_budget SELECT floor(extract(epoch FROM now()) / 3600)::int - n, client, 1
    FROM unnest(ARRAY[0, 23, 26, 99]) AS n, unnest(ARRAY['', '10.0.0.1']) AS client`);
  await owner.query(`INSERT INTO escrow_gas
    SELECT decode(repeat('ab', 20), 'hex'), (now() AT TIME ZONE 'UTC')::date - age, 5 FROM unnest(ARRAY[0, 7, 8, 90]) AS age`);
  expect([await prune(), await prune()]).toEqual([2 + 1 + 4 + 2, 0]);
  expect(await left("SELECT count(*) FROM score_lookup")).toEqual([2]);
  expect(await left("SELECT block FROM lookup_mark ORDER BY 1")).toEqual([0, 29]);
  expect(await left("SELECT count(*) FROM lookup_budget")).toEqual([4]);
  expect(await left("SELECT (now() AT TIME ZONE 'UTC')::date - day FROM escrow_gas ORDER BY 1")).toEqual([0, 7]);
});

test("Recorded transfers are kept for thirty days behind their chain's position", async () => {
  await owner.query("INSERT INTO decoy_watch VALUES (8453, 2000000, now()), (84532, 1296005, now())");
  await owner.query(`INSERT INTO decoy_transfer
    SELECT chain, decode(repeat('ab', 32), 'hex'), block, decode(repeat('cd', 20), 'hex'), decode(repeat('ef', 20), 'hex'), 1, false, block
    FROM unnest(ARRAY[8453, 84532, 1]) AS chain, unnest(ARRAY[4, 5, 703999, 704000, 1999999]) AS block`);
  expect([await prune(), await prune()]).toEqual([4, 0]);
  const of = (chain: number) => left(`SELECT block_number FROM decoy_transfer WHERE chain = ${chain} ORDER BY 1`);
  expect(await of(8453)).toEqual([704_000, 1_999_999]);
  expect(await of(84532)).toEqual([5, 703_999, 704_000, 1_999_999]);
  expect(await of(1)).toHaveLength(5);
});

test("Unpaid exam orders are kept for a minute, and sellers' responses for an hour", async () => {
  await owner.query(`INSERT INTO seller_exam_open (origin, payer, nonce, amount, until)
    SELECT n::text, decode(repeat('ab', 20), 'hex'), decode(lpad(to_hex(n), 64, '0'), 'hex'), 1, now() - make_interval(secs => n)
    FROM unnest(ARRAY[0, 50, 70, 900]) AS n`);
  await owner.query(`INSERT INTO seller_probe (origin, request, at)
    SELECT n::text, decode(repeat('ab', 32), 'hex'), now() - make_interval(mins => n) FROM unnest(ARRAY[0, 59, 61, 900]) AS n`);
  expect([await prune(), await prune()]).toEqual([2 + 2, 0]);
  expect(await left("SELECT origin FROM seller_exam_open ORDER BY until DESC")).toEqual([0, 50]);
  expect(await left("SELECT origin FROM seller_probe ORDER BY at DESC")).toEqual([0, 59]);
});

describe("The job watch", () => {
  const START = Date.UTC(2026, 10, 24, 12);
  const HANG_MS = 600_000;

  let ms: number;
  let watch: JobWatch;

  beforeEach(() => {
    ms = START;
    watch = createJobWatch(() => new Date(ms));
  });

  const run = (outcome: "done" | "failed", tookMs = 250) => {
    const end = watch.begin("resolve");
    ms += tookMs;
    end(outcome);
  };

  describe("A job", () => {
    test("A job is listed with its runs, its failures, and its last success", () => {
      run("done");
      run("failed", 500);
      expect(watch.list()).toEqual([
        { name: "resolve", ok: true, runs: 2, failures: 1, lastSuccessAt: new Date(START + 250), lastSeconds: 0.5 },
      ]);
    });

    test("A job is healthy after two failures in a row, unhealthy after three, and healthy again after a success", () => {
      const health = () => watch.list().map(({ ok, failures }) => [ok, failures]);
      run("failed");
      run("failed");
      expect(health()).toEqual([[true, 2]]);
      run("failed");
      expect(health()).toEqual([[false, 3]]);
      run("done");
      expect(health()).toEqual([[true, 3]]);
    });

    test("A job is unhealthy while one run takes longer than ten minutes", () => {
      run("done");
      const end = watch.begin("resolve");
      ms += HANG_MS;
      expect(watch.list()).toMatchObject([{ ok: true }]);
      ms += 1;
      expect(watch.list()).toMatchObject([{ ok: false, runs: 1 }]);
      end("done");
      expect(watch.list()).toMatchObject([{ ok: true, runs: 2 }]);
    });
  });
});

describe("The lookup budget", async () => {
  const database = await freshDatabase();
  const pool = await forFile(connect(database.apiUrl));

  /** Returns the number of requests that each client may make out of eight. */
  async function letThrough(purpose: string, limits: { client: number; all: number }, clients: readonly string[]) {
    const budget = createLookupBudget(pool, limits, purpose);
    const counts: number[] = [];
    for (const client of clients) {
      let count = 0;
      for (let request = 0; request < 8; request++)
        count += await budget.spend(client).then(
          () => 1,
          () => 0,
        );
      counts.push(count);
    }
    return counts;
  }

  test("The clients of one network share a tenth of the hourly budget, and other networks have theirs", async () => {
    const flood = ["198.51.100.1", "198.51.100.2", "198.51.100.3", "198.51.100.4"];
    expect(await letThrough("a ", { client: 5, all: 120 }, [...flood, "198.51.101.1", "203.0.113.1"])).toEqual([
      ...[5, 5, 2, 0],
      ...[5, 5],
    ]);
    const v6 = ["2001:db8:1:1::/64", "2001:db8:1:2::/64", "2001:db8:1:3::/64", "2001:db8:2:1::/64"];
    expect(await letThrough("b ", { client: 5, all: 120 }, v6)).toEqual([5, 5, 2, 5]);
  });

  test("One client may spend its full limit, even if that is more than a tenth of the budget", async () => {
    expect(await letThrough("c ", { client: 5, all: 12 }, ["198.51.100.1", "203.0.113.1", "192.0.2.1"])).toEqual([
      5, 5, 2,
    ]);
  });
});
