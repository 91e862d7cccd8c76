import { expect, test } from "vitest";
import { askNode, serveNode } from "../../support/chain/rpc.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { startApiStage } from "../../support/service/api-process.ts";

// The figures of docs/scale.md, "What a payment costs". The write-ahead log covers the whole server, so run this file
// alone.

const [ALONE, TOGETHER] = [100, 600];
const stage = await forFile(startApiStage());
const pass = askNode(stage.chain.rpcUrl);
let calls = 0;
let requests = 0;
const node = await forFile(
  serveNode({
    answer: pass,
    refuse: (batch) => {
      calls += batch.length;
      requests++;
      return null;
    },
  }),
);

interface Reading {
  readonly commits: number;
  readonly wal: number;
  readonly bytes: number;
  readonly calls: number;
  readonly requests: number;
  readonly at: number;
}

async function read(): Promise<Reading> {
  const { rows } = await stage.owner.query<{ commits: string; wal: string; bytes: string }>(`SELECT
    (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()) AS commits,
    pg_current_wal_lsn() - '0/0' AS wal, pg_database_size(current_database()) AS bytes`);
  const [row] = rows;
  const [commits, wal, bytes] = [row?.commits, row?.wal, row?.bytes].map(Number) as [number, number, number];
  return { commits, wal, bytes, calls, requests, at: performance.now() };
}

/** A backend's statistics arrive one second after its work, and jobs work a little longer. */
const settle = () => new Promise((done) => setTimeout(done, 4_000));

test("A payment costs few commits and calls, and a batch shares them", async () => {
  const api = await stage.start(node);
  const signed = await Promise.all(
    Array.from({ length: ALONE + TOGETHER + 10 }, async () =>
      signPayment(await newPayer(stage.chain), { validBefore: BigInt(Math.floor(Date.now() / 1_000) + 1_800) }),
    ),
  );
  const pay = async (one: (typeof signed)[number] | undefined) => {
    if (one === undefined) throw new Error("too few payments were signed");
    expect((await post(`${api.url}/test/basic`, v2(one))).status).toBe(200);
  };
  for (let warm = 0; warm < 10; warm++) await pay(signed.pop());
  await settle();
  const idleFrom = await read();
  await settle();
  const idle = await read();
  const perSecond = (name: keyof Reading) => (1_000 * (idle[name] - idleFrom[name])) / (idle.at - idleFrom.at);

  const measured = async (immediate: number, payments: number) => {
    const before = await read();
    let left = payments;
    await Promise.all(
      Array.from({ length: immediate }, async () => {
        while (left-- > 0) await pay(signed.pop());
      }),
    );
    const seconds = (performance.now() - before.at) / 1_000;
    // Waits until all of them are final, in the log, and counted.
    const isOver = async () => {
      await stage.chain.mine(1);
      const { rows } = await stage.owner.query(
        "SELECT 1 FROM payment WHERE state = 'fulfilled' AND final_at IS NULL UNION ALL SELECT 1 FROM log_pending LIMIT 1",
      );
      return rows.length === 0;
    };
    await eventually(isOver, true, 60_000);
    await settle();
    const after = await read();
    const each = (name: keyof Reading) =>
      (after[name] - before[name] - (perSecond(name) * (after.at - before.at)) / 1_000) / payments;
    return {
      at_once: immediate,
      payments_a_second: Math.round((10 * payments) / seconds) / 10,
      commits: each("commits"),
      wal_bytes: each("wal"),
      table_bytes: (after.bytes - before.bytes) / payments,
      rpc_calls: each("calls"),
      rpc_requests: each("requests"),
    };
  };
  const [alone, together] = [await measured(1, ALONE), await measured(25, TOGETHER)];
  console.table([alone, together]);
  console.table({ idle: { commits: perSecond("commits"), wal: perSecond("wal"), calls: perSecond("calls") } });
  const sizes = await stage.owner.query(
    `SELECT relname, pg_total_relation_size(oid) / ${ALONE + TOGETHER + 10} AS bytes_a_payment FROM pg_class
      WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 2 DESC LIMIT 12`,
  );
  console.table(sizes.rows);
  expect(alone.commits).toBeLessThan(25);
  expect(alone.rpc_calls).toBeLessThan(30);
  expect(together.commits).toBeLessThan(alone.commits);
  expect(together.rpc_calls).toBeLessThan(alone.rpc_calls);
});
