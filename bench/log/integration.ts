import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { withClient } from "../../scripts/embedded/postgres.ts";
import { measure } from "../payments/paying.ts";
import type { World } from "../payments/world.ts";
import { median } from "../programs.ts";

const WAITING = 12_000;
/** How many entries the integrator adds with one statement. */
const CHUNK = 50;

/** Certificates like the newest one, so their entries are as large; the trigger queues them like any other. */
const COPY = `INSERT INTO certificate (id, product, test_version, result, level, wallet, checks, detected, issued_at,
    valid_until, chain, asset, nonce, tx, block_number, amount, pay_to)
  SELECT copy.id, product, test_version, result, level, wallet, checks, detected, issued_at, valid_until, chain, asset,
    decode(repeat(copy.id, 4), 'hex'), tx, block_number, amount, pay_to
  FROM (SELECT * FROM certificate ORDER BY issued_at DESC LIMIT 1) AS one
  CROSS JOIN (SELECT 'ff' || lpad(to_hex(n), 14, '0') AS id FROM generate_series($1::int, $2::int) AS n) AS copy`;

let copied = 0;
export async function copies(owner: pg.Client, count: number): Promise<void> {
  await owner.query(COPY, [copied + 1, copied + count]);
  copied += count;
}

export async function whenTaken(owner: pg.Client): Promise<void> {
  while ((await owner.query("SELECT FROM log_pending LIMIT 1")).rowCount !== 0) await sleep(50);
}

/** How fast a queue gets shorter while sales go on, beside a bare insert of the same rows with sales going on. */
export const integrate = (world: World): Promise<number> =>
  withClient(world.database.ownerUrl, async (owner) => {
    await whenTaken(owner);
    const size = async () => Number((await owner.query("SELECT max(size) AS size FROM log_checkpoint")).rows[0].size);
    await copies(owner, WAITING);
    const before = await size();
    const ours = await beside(world, async () => {
      await whenTaken(owner);
      return (await size()) - before;
    });
    const peer = await beside(world, () => insertBare(owner, before));
    console.log(`${WAITING} certificates that wait, in the service's own process, with sales beside them`);
    console.log(`  integrated ${ours.perSecond.toFixed(0)} entries/s, ${ours.sales.toFixed(1)} sales/s beside it`);
    console.log(
      `  bare insert of the same rows ${peer.perSecond.toFixed(0)} /s, ${peer.sales.toFixed(1)} sales/s beside it`,
    );
    console.log(`  integrated over bare ${(ours.perSecond / peer.perSecond).toFixed(3)}`);
    return ours.perSecond;
  });

/** Does the work while payers pay, until it is done. */
async function beside({ sides: { ours }, payers }: World, work: () => Promise<number>) {
  let isDone = false;
  const selling = (async () => {
    const rates: number[] = [];
    while (!isDone) rates.push((await measure(ours, { payers, each: 4 })).perSecond);
    return median(rates);
  })();
  const started = performance.now();
  const done = await work();
  const perSecond = (done * 1_000) / (performance.now() - started);
  isDone = true;
  return { perSecond, sales: await selling };
}

/** The rows alone, with their keys: no signing, no tree, no queue. */
async function insertBare(owner: pg.Client, from: number): Promise<number> {
  await owner.query("CREATE TABLE bare (LIKE log_entry INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES)");
  const { rows } = await owner.query("SELECT idx, type, ref, entry FROM log_entry WHERE idx >= $1 ORDER BY idx", [
    from,
  ]);
  await owner.query("BEGIN");
  for (let at = 0; at < rows.length; at += CHUNK) {
    const part = rows.slice(at, at + CHUNK);
    await owner.query(
      "INSERT INTO bare (generation, idx, type, ref, entry) SELECT 1, * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bytea[])",
      ["idx", "type", "ref", "entry"].map((column) => part.map((row) => row[column])),
    );
  }
  await owner.query("COMMIT");
  return rows.length;
}
