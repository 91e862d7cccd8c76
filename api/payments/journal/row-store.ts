import { bytes, hex } from "../../platform/db/connection.ts";
import type { PaymentKey } from "../../platform/http/route.ts";
import { NETWORKS, networkOfChain } from "../../platform/networks.ts";
import type { PaymentRow } from "../journal.ts";
import type { Refusal } from "../refusal.ts";
import type { Extensions } from "../scheme.ts";
import type { Reason, State } from "../step-types.ts";

/** Returns the primary key of a journal row: chain, asset, payer, nonce. */
export const keyValues = ({ network, asset, payer, nonce }: PaymentKey) => [
  NETWORKS[network].chainId,
  bytes(asset),
  bytes(payer),
  bytes(nonce),
];

/** The condition that matches a row, for `keyValues`. */
export const KEY = "chain = $1 AND asset = $2 AND payer = $3 AND nonce = $4";

/** The order in which statements of one transaction take their locks: the payer's first, then the row's. */
export const lockOrder = ({ payer, nonce }: PaymentKey): string => payer + nonce;

export const LEASE = "interval '30 s'";

/** Matches an unfinished payment. */
const OPEN = "(state IN ('settling', 'settled') OR (state = 'fulfilled' AND final_at IS NULL)) AND reason IS NULL";
/**
 * Matches payments that may make progress (`ACTIVE`) and those parked without any (`PARKED`). Each has its own index.
 */
export const ACTIVE = `${OPEN} AND parked_at IS NULL`;
export const PARKED = `${OPEN} AND parked_at IS NOT NULL`;

/** The columns that a change of state sets, because the payment makes progress. */
const PROGRESS_VALUES = [
  ["state_changed_at", "now()"],
  ["parked_at", "NULL"],
  ["alerted_at", "NULL"],
] as const;

/** The assignments of a write that changes the state. */
export const PROGRESS = PROGRESS_VALUES.map(([column, value]) => `${column} = ${value}`).join(", ");

/** The same for a write to a state, an SQL expression, that the row may already have. */
export const progressTo = (state: string): string =>
  PROGRESS_VALUES.map(
    ([column, value]) => `${column} = CASE WHEN state = ${state} THEN ${column} ELSE ${value} END`,
  ).join(", ");

/**
 * When the resolver checks the row next: soon after a payment arrives, then less and less often. A failing handler
 * backs off faster.
 */
export const LOOK_LATER = `now() + CASE WHEN failures > 0 AND state = 'settled' THEN least(interval '1 s' * power(2, least(failures, 12)), interval '1 h')
  WHEN state = 'fulfilled' AND parked_at IS NULL THEN least(greatest((now() - received_at) / 4, interval '2 s'), interval '1 min')
  ELSE least(greatest((now() - received_at) / 4, interval '2 s'), interval '1 h') END`;

/** Returns the context that a row's sealed signature is bound to. */
export const sealContext = ({ network, asset, payer, nonce }: PaymentKey): string =>
  `${network}|${asset}|${payer}|${nonce}`;

/** The SQL for the large columns of a journal row. */
interface Large {
  readonly input: string;
  readonly response: string;
}

const columnsWith = ({ input, response }: Large): string =>
  `chain, asset, payer, nonce, payment_id, digest, signature_sha256, valid_after, valid_before, route, fingerprint, ${input} AS input,
  pay_to, value, version, received_at, head_block, state, reason, lease_until > now() AS lease_live, failures, tx, block_number, block_hash, log_index,
  final_at, revived, refusal, status, ${response} AS response, location, scheme, details, extensions`;

/** The columns of a journal row, as `parsePayment` reads them. */
export const PAYMENT_COLUMNS = columnsWith({ input: "input", response: "response" });
/** The columns that the resolver needs. It does not sell or answer a fulfilled payment again. */
export const UNFINISHED_COLUMNS = columnsWith({
  input: "CASE WHEN state <> 'fulfilled' THEN input END",
  response: "NULL::bytea",
});

export interface PaymentColumns {
  chain: number;
  asset: Buffer;
  payer: Buffer;
  nonce: Buffer;
  payment_id: string | null;
  digest: Buffer;
  signature_sha256: Buffer;
  valid_after: string;
  valid_before: string;
  route: string;
  fingerprint: Buffer;
  input: unknown;
  pay_to: Buffer;
  value: string;
  version: "v1" | "v2";
  received_at: Date;
  head_block: string;
  state: State;
  reason: Reason | null;
  lease_live: boolean;
  failures: number;
  tx: Buffer | null;
  block_number: string | null;
  block_hash: Buffer | null;
  log_index: number | null;
  final_at: Date | null;
  revived: boolean;
  refusal: Refusal | null;
  status: number | null;
  response: Buffer | null;
  location: string | null;
  scheme: string;
  details: unknown;
  extensions: string | null;
}

export function parsePayment(c: PaymentColumns): PaymentRow {
  const settled = c.tx !== null && c.block_hash !== null && c.block_number !== null && c.log_index !== null;
  return {
    key: { network: networkOfChain(c.chain), asset: hex(c.asset), payer: hex(c.payer), nonce: hex(c.nonce) },
    scheme: c.scheme,
    details: c.details,
    paymentId: c.payment_id,
    digest: hex(c.digest),
    signatureSha256: c.signature_sha256.toString("hex"),
    validAfter: BigInt(c.valid_after),
    validBefore: BigInt(c.valid_before),
    route: c.route,
    fingerprint: c.fingerprint.toString("hex"),
    input: c.input,
    extensions: c.extensions === null ? null : (JSON.parse(c.extensions) as Extensions),
    payTo: hex(c.pay_to),
    value: BigInt(c.value),
    version: c.version,
    receivedAt: c.received_at,
    headBlock: Number(c.head_block),
    state: c.state,
    reason: c.reason,
    leaseLive: c.lease_live,
    failures: c.failures,
    final: c.final_at !== null,
    revived: c.revived,
    refusal: c.refusal,
    settlement:
      settled && c.tx && c.block_hash
        ? {
            transaction: hex(c.tx),
            block: Number(c.block_number),
            blockHash: hex(c.block_hash),
            logIndex: Number(c.log_index),
          }
        : null,
    response:
      c.response !== null && c.status !== null ? { status: c.status, body: c.response, location: c.location } : null,
  };
}
