import type pg from "pg";
import { median } from "../../programs.ts";
import { type Attack, atMost } from "../row.ts";
import { openService } from "../service.ts";

const BAITS = 100_000;
const FINISHED = 1_000_000;
const PASSES = 25;

/** What the resolver and the watch ask every second, of a large journal. */
export const PASSES_AT_SCALE: Attack = {
  rows: [
    {
      id: "due",
      line: 7,
      what: "a pass of `due`, 100,000 stuck and 1,000,000 finished rows",
      unit: "ms",
      goal: atMost(2),
    },
    { id: "backlog", line: 7, what: "a pass of `backlog` there", unit: "ms", goal: atMost(2) },
  ],
  async run(ground) {
    const service = await openService(ground);
    const { journal } = service.jobs as unknown as {
      journal: { due(limit: number): Promise<unknown>; backlog(): Promise<unknown> };
    };
    try {
      await fill(service.owner);
      return { due: await timed(() => journal.due(128)), backlog: await timed(() => journal.backlog()) };
    } finally {
      await service.stop();
    }
  },
};

async function timed(pass: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let turn = 0; turn < PASSES; turn++) {
    const started = performance.now();
    await pass();
    times.push(performance.now() - started);
  }
  return Math.round(median(times) * 100) / 100;
}

/** Finished payments, and signed baits whose windows are open: none of them is due for anything. */
async function fill(owner: pg.Pool): Promise<void> {
  await owner.query("ALTER TABLE payment DROP CONSTRAINT payment_pkey; DROP INDEX payment_tx");
  await owner.query(rows(1, FINISHED, "NULL, int8send(n), n, '\\x05', 0, now(), NULL"));
  await owner.query(rows(FINISHED + 1, BAITS, "'bait', NULL, NULL, NULL, NULL, NULL, '\\x06'"));
  await owner.query(`ALTER TABLE payment ADD PRIMARY KEY (chain, asset, payer, nonce);
    CREATE INDEX payment_tx ON payment (tx) WHERE tx IS NOT NULL`);
  await owner.query("VACUUM (ANALYZE) payment");
}

const rows = (from: number, count: number, rest: string): string => `
  INSERT INTO payment (chain, asset, payer, nonce, digest, signature_sha256, valid_after, valid_before, route, fingerprint, pay_to, value, version,
    received_at, look_at, head_block, input, state, status, response, location, reason, tx, block_number, block_hash, log_index, final_at, sealed)
  SELECT 8453, '\\x833589fcd6edb6e08f4c7c32d4f71b54bda02913', decode(lpad(to_hex(n), 40, '0'), 'hex'), decode(lpad(to_hex(n), 64, '0'), 'hex'),
    '\\x01', '\\x02', 0, floor(extract(epoch FROM now())) + 80000, 'test.basic', '\\x03', '\\x00000000000000000000000000000000c0ffee01', 250000, 'v2',
    now() - interval '1 day', now() - interval '1 hour', 1, 'null', 'fulfilled', 200, '\\x7b7d', '/cert/0123456789abcdef', ${rest}
  FROM generate_series(${from}, ${from + count - 1}) n`;
