import type pg from "pg";
import { bytes, hex } from "../platform/db/connection.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import type { Cursor } from "./list-purchases.ts";

/** The maximum purchases per page. A page also ends once its responses have `MOST_BYTES`. */
const MOST_PURCHASES = 20;
const MOST_BYTES = 524_288;

interface Columns {
  /** The number of purchases found, at most one more than a page has. */
  found: number;
  asset: Buffer;
  nonce: Buffer;
  payment_id: string | null;
  route: string;
  pay_to: Buffer;
  value: string;
  received_at: Date;
  tx: Buffer;
  block_number: string;
  final: boolean;
  status: number | null;
  response: Buffer | null;
  location: string | null;
}

/** The condition of `payment_purchases`: a payer's settled payments. A withheld one has no transaction. */
const SETTLED = "state IN ('settled', 'fulfilled') AND tx IS NOT NULL";

/** One row more than a page, without reading responses that do not fit, because reading only their length is cheap. */
const PAGE = (condition: string) => `SELECT * FROM (
    SELECT *, count(*) OVER ()::int AS found, coalesce(sum(length(response)) OVER (ORDER BY received_at DESC, nonce DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
    FROM (
      SELECT asset, nonce, payment_id, route, pay_to, value, received_at, tx, block_number, final_at IS NOT NULL AS final, status, response, location
      FROM payment WHERE payer = $1 AND chain = $2 AND ${SETTLED} AND (received_at, nonce) < ($3, $4) ${condition}
      ORDER BY received_at DESC, nonce DESC LIMIT ${MOST_PURCHASES + 1}) AS newest) AS sized
  WHERE before < ${MOST_BYTES} ORDER BY received_at DESC, nonce DESC`;

const ALL = { name: "purchases", text: PAGE("") };
const OF_ONE = { name: "purchases-of-one", text: PAGE("AND tx = $5") };

export type PurchaseStore = ReturnType<typeof createPurchaseStore>;

/** Creates the store of used nonces, which also reads purchases. */
export const createPurchaseStore = (pool: pg.Pool) => ({
  /** Marks a nonce as used, for every process. Returns false if it was used before. */
  async useNonce(nonce: string): Promise<boolean> {
    const { rowCount } = await pool.query({
      name: "sign-in",
      text: "INSERT INTO sign_in (nonce) VALUES ($1) ON CONFLICT DO NOTHING",
      values: [Buffer.from(nonce, "hex")],
    });
    return rowCount === 1;
  },
  /** Returns a page, limited by number and by the bytes of the responses. It has at least one purchase if any is left. */
  async page(asked: AskedPurchases): Promise<StoredPage> {
    const { payer, network, after, transaction } = asked;
    const place = after === null ? ["infinity", Buffer.alloc(0)] : [after.receivedAt, bytes(after.nonce)];
    const values = [bytes(payer), NETWORKS[network].chainId, ...place];
    const { rows } = await pool.query<Columns>(
      transaction === null ? { ...ALL, values } : { ...OF_ONE, values: [...values, bytes(transaction)] },
    );
    const shown = rows.slice(0, MOST_PURCHASES);
    return { purchases: shown.map((row) => parse(row, asked)), isLast: shown.length === (rows[0]?.found ?? 0) };
  },
});

function parse(row: Columns, { network }: AskedPurchases): StoredPurchase {
  const { status, response } = row;
  return {
    network,
    asset: hex(row.asset),
    nonce: hex(row.nonce),
    route: row.route,
    paymentId: row.payment_id,
    payTo: hex(row.pay_to),
    value: BigInt(row.value),
    receivedAt: row.received_at,
    transaction: hex(row.tx),
    block: Number(row.block_number),
    final: row.final,
    answer: status === null || response === null ? null : { status, body: response },
    location: row.location,
  };
}

/** A settled payment of a wallet, from the journal. */
export interface StoredPurchase extends Cursor {
  readonly network: Network;
  readonly asset: Address;
  /** The route's name in the journal. */
  readonly route: string;
  readonly paymentId: string | null;
  readonly payTo: Address;
  readonly value: bigint;
  readonly transaction: Hex;
  readonly block: number;
  readonly final: boolean;
  /** The stored response, or null while the sale is in progress. */
  readonly answer: { readonly status: number; readonly body: Uint8Array } | null;
  /** The path of the public record that it bought, or null. */
  readonly location: string | null;
}

export interface AskedPurchases {
  readonly payer: Address;
  readonly network: Network;
  /** The end of the previous page, or null for the first page. */
  readonly after: Cursor | null;
  /** Only purchases that this transaction settled; null for all. */
  readonly transaction: Hex | null;
}

/** A page, newest first. */
interface StoredPage {
  readonly purchases: readonly StoredPurchase[];
  readonly isLast: boolean;
}

/** A page for the wallet that signed in. */
export interface ShownPage extends StoredPage {
  readonly wallet: Address;
}
