import { randomBytes } from "node:crypto";
import type pg from "pg";
import type { Journal, NewPayment } from "../../../api/payments/journal.ts";
import type { State, Write } from "../../../api/payments/step-types.ts";
import type { Settlement } from "../../../api/platform/chain/view.ts";
import { answered, jsonAnswer } from "../../../api/platform/http/answer.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { binary } from "../service/database.ts";
import { PAY_TO } from "../service/environment.ts";

/** Payments as they enter the journal, and the changes that move one. */

export const hex = (length: number) => `0x${randomBytes(length).toString("hex")}` as const;

export const newPayment = ({
  payer = hex(20),
  ...more
}: Partial<NewPayment> & { readonly payer?: `0x${string}` } = {}): NewPayment => ({
  key: { network: "eip155:8453", asset: NETWORKS["eip155:8453"].usdc.address, payer, nonce: hex(32) },
  scheme: "exact",
  details: null,
  paymentId: null,
  digest: hex(32),
  signature: hex(65),
  validAfter: 0n,
  validBefore: 4_000_000_000n,
  route: "test.basic",
  fingerprint: randomBytes(32),
  input: null,
  extensions: null,
  payTo: PAY_TO,
  value: 250_000n,
  version: "v2",
  headBlock: 1,
  receivedAt: new Date(),
  ...more,
});

const settlement: Settlement = { transaction: hex(32), block: 7, blockHash: hex(32), logIndex: 1 };
export const WRITES = {
  refuse: { type: "write", from: ["received"], to: "void", reason: "refused" },
  leave: { type: "write", from: ["received"], to: "settling" },
  settle: { type: "write", from: ["settling", "settled"], to: "settled", settlement },
  goBack: { type: "write", from: ["settled"], to: "settling" },
  expire: { type: "write", from: ["settling", "settled"], to: "void", reason: "expired" },
} as const satisfies Record<string, Write>;
export const COMPLETE = { type: "complete", from: ["settled"], settlement: null } as const;
type Change = Write | typeof COMPLETE;
export const PATHS: Record<State, readonly Change[]> = {
  received: [],
  settling: [WRITES.leave],
  settled: [WRITES.leave, WRITES.settle],
  fulfilled: [WRITES.leave, WRITES.settle, COMPLETE],
  void: [WRITES.refuse],
};

/** Makes a change under a token. Returns the number of changed rows. */
export async function apply(
  by: Journal,
  { token, ...payment }: NewPayment & { readonly token: string },
  { change }: { readonly change: Change },
): Promise<number> {
  const { key } = payment;
  if (change.type === "write") return by.write(key, token, isLeaving(change) ? { ...change, kept: payment } : change);
  const completion = answered(jsonAnswer({}));
  return (await by.complete(key, token, { completion, settlement: change.settlement })) === null ? 0 : 1;
}
/**
 * Returns whether this is the write before the signature leaves the process, which also stores everything that finishes
 * the payment.
 */
export const isLeaving = ({ from, to }: Write): boolean => to === "settling" && from.includes("received");

/** The number of rows of each kind, each inserted by one statement. */
export interface Filling {
  /** Paid, answered, and final. */
  readonly finished?: number;
  /** Signed baits, which were answered, never submitted, and are kept until they expire. */
  readonly baits?: number;
  /** Submitted long ago without a result. */
  readonly stuck?: number;
  /** Refused, with windows that ended long ago. */
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

/** Refused payments whose windows ended two hours ago. */
export const refusedRows = (rows: number): string => fill("refused", 1, rows);

/** Fills an empty journal. Its large indexes are created afterwards, as in a restore. */
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

/** A payment in the journal, as if left by a run. */
export interface KeptPayment {
  readonly payer: `0x${string}`;
  readonly receivedAt: Date;
  /** `bait` is answered and never submitted. */
  readonly state: "received" | "settling" | "settled" | "fulfilled" | "reversed" | "bait";
  readonly network?: keyof typeof NETWORKS;
  readonly route?: string;
  readonly answer?: object;
  readonly paymentId?: string;
}

const INSERT = `
  INSERT INTO payment (chain, asset, payer, nonce, payment_id, digest, signature_sha256, valid_after, valid_before, route, fingerprint, pay_to, value,
    version, scheme, received_at, state_changed_at, next_attempt_at, head_block, input, state, reason, status, response, tx, block_number, block_hash, log_index, final_at)
  SELECT chain, asset, payer, sha256(int8send(nextval('payment_entry'))), payment_id, '\\x01', '\\x02', 0, 4e9, route, '\\x03',
    '\\x00000000000000000000000000000000c0ffee01', value, 'v2', 'exact', received_at, now(), 'infinity', 1, 'null', state, reason,
    CASE WHEN response IS NOT NULL THEN 200 END, response, tx, 7, '\\x05', 0, now()
  FROM jsonb_to_recordset($1::jsonb) AS given(chain int, asset bytea, payer bytea, payment_id text, route text, value numeric,
    received_at timestamptz, state text, reason text, response bytea, tx bytea)`;

const REASONS: Partial<Record<KeptPayment["state"], string>> = { reversed: "reversed", bait: "bait" };
const KEPT_STATES: Partial<Record<KeptPayment["state"], string>> = { reversed: "void", bait: "fulfilled" };

const bytea = (hex: string): string => `\\x${binary(hex as `0x${string}`).toString("hex")}`;

/** Adds payments. Each is settled by the transaction of its index, starting with 0x00…01. */
export async function keepPayments(owner: pg.ClientBase | pg.Pool, payments: readonly KeptPayment[]): Promise<void> {
  const rows = payments.map((payment, place) => {
    const { payer, receivedAt, state, network = "eip155:8453", route = "test.basic", paymentId, answer = {} } = payment;
    const { chainId, usdc } = NETWORKS[network];
    const isAnswered = state === "fulfilled" || state === "bait";
    const hasTransaction = state === "settled" || state === "fulfilled" || state === "reversed";
    return {
      chain: chainId,
      asset: bytea(usdc.address),
      payer: bytea(payer.toLowerCase()),
      payment_id: paymentId ?? null,
      route,
      value: 250_000 + place,
      received_at: receivedAt.toISOString(),
      state: KEPT_STATES[state] ?? state,
      reason: REASONS[state] ?? null,
      response: isAnswered ? bytea(`0x${Buffer.from(JSON.stringify(answer)).toString("hex")}`) : null,
      tx: hasTransaction ? bytea(transactionAt(place)) : null,
    };
  });
  await owner.query(INSERT, [JSON.stringify(rows)]);
}

export const transactionAt = (place: number): `0x${string}` => `0x${(place + 1).toString(16).padStart(64, "0")}`;
