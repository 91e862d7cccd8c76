import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";

/** Copies the newest certificate, so that the entries have the same size. The trigger queues them like any other. */
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

/** Returns the number of entries in the newest tree. */
export const treeSize = async (owner: pg.Client): Promise<number> =>
  Number((await owner.query("SELECT max(size) AS size FROM log_checkpoint")).rows[0].size);
