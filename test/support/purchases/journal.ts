import type pg from "pg";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { binary } from "../service/database.ts";

/** A payment in the journal, as a run would have left it. */
export interface KeptPayment {
  readonly payer: `0x${string}`;
  readonly receivedAt: Date;
  /** `bait`: answered and never submitted. */
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
const STATES: Partial<Record<KeptPayment["state"], string>> = { reversed: "void", bait: "fulfilled" };

const bytea = (hex: string): string => `\\x${binary(hex as `0x${string}`).toString("hex")}`;

/** Adds payments, each settled by the transaction of its place: the first has 0x00…01. */
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
      state: STATES[state] ?? state,
      reason: REASONS[state] ?? null,
      response: isAnswered ? bytea(`0x${Buffer.from(JSON.stringify(answer)).toString("hex")}`) : null,
      tx: hasTransaction ? bytea(transactionAt(place)) : null,
    };
  });
  await owner.query(INSERT, [JSON.stringify(rows)]);
}

export const transactionAt = (place: number): `0x${string}` => `0x${(place + 1).toString(16).padStart(64, "0")}`;
