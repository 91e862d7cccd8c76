import type pg from "pg";

/** How many rows of each kind, made in one statement each. */
export interface Filling {
  /** Paid, answered and final: over. */
  readonly finished?: number;
  /** Signed baits: answered, never submitted, and kept until they expire. */
  readonly baits?: number;
  /** Submitted long ago, and nothing has come of it. */
  readonly stuck?: number;
  /** Refused, their windows long over. */
  readonly refused?: number;
}

const KINDS: Readonly<Record<keyof Filling, string>> = {
  finished: "'fulfilled', NULL, 200, '\\x7b7d'::bytea, int8send(n), n, '\\x05', 0, now(), NULL::bytea, NULL",
  baits: "'fulfilled', 'bait', 200, '\\x7b7d', NULL, NULL, NULL, NULL, NULL, '\\x06', '/cert/0123456789abcdef'",
  stuck: "'settling', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\\x06', NULL",
  refused: "'void', 'refused', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
};
const WINDOWS: Readonly<Record<keyof Filling, string>> = {
  finished: "extract(epoch FROM now()) - 3e6",
  baits: "extract(epoch FROM now()) + n % 80000 + 60",
  stuck: "extract(epoch FROM now()) + 80000",
  refused: "extract(epoch FROM now()) - 7200",
};

const fill = (kind: keyof Filling, from: number, rows: number): string => `
  INSERT INTO payment (chain, asset, payer, nonce, digest, signature_sha256, valid_after, valid_before, route, fingerprint, pay_to, value, version, scheme,
    received_at, state_changed_at, next_attempt_at, head_block, input, state, reason, status, response, tx, block_number, block_hash, log_index, final_at, encrypted_signature, location)
  SELECT 8453, '\\x833589fcd6edb6e08f4c7c32d4f71b54bda02913', decode(lpad(to_hex(n), 40, '0'), 'hex'), decode(lpad(to_hex(n), 64, '0'), 'hex'),
    '\\x01', '\\x02', 0, floor(${WINDOWS[kind]}), 'test.basic', '\\x03', '\\x00000000000000000000000000000000c0ffee01', 250000, 'v2', 'exact',
    now() - interval '1 day', now() - interval '1 day', now(), 1, 'null', ${KINDS[kind]}
  FROM generate_series(${from}, ${from + rows - 1}) n`;

/** Refused payments whose windows were over two hours ago. */
export const refusedRows = (rows: number): string => fill("refused", 1, rows);

/** Fills an empty journal; its big indexes are made afterwards, as a restore would. */
export async function fillJournal(owner: pg.Client, filling: Filling): Promise<void> {
  await owner.query(`ALTER TABLE payment DROP CONSTRAINT payment_pkey; DROP INDEX payment_tx, payment_purchases`);
  let from = 1;
  for (const [kind, rows] of Object.entries(filling) as [keyof Filling, number][]) {
    await owner.query(fill(kind, from, rows));
    from += rows;
  }
  await owner.query(`ALTER TABLE payment ADD PRIMARY KEY (chain, asset, payer, nonce);
    CREATE INDEX payment_tx ON payment (tx) WHERE tx IS NOT NULL;
    CREATE INDEX payment_purchases ON payment (payer, received_at, nonce) WHERE state IN ('settled', 'fulfilled') AND tx IS NOT NULL`);
  await owner.query("VACUUM (ANALYZE) payment");
}
