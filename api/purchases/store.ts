import type pg from "pg";
import { bytes, hex } from "../platform/db/connection.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import type { Cursor } from "./list-purchases.ts";

/** A page has at most so many purchases, and ends once their answers have so many bytes. */
const MOST_PURCHASES = 20;
const MOST_BYTES = 524_288;

interface Columns {
  /** How many there are, one more than a page at most. */
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

/** A payer's settled payments; what is withheld has no transaction. The condition of `payment_purchases`. */
const SETTLED = "state IN ('settled', 'fulfilled') AND tx IS NOT NULL";

/** One more than a page has, without reading answers that do not fit: the length of a stored answer costs nothing. */
const PAGE = (condition: string) => `SELECT * FROM (
    SELECT *, count(*) OVER ()::int AS found, coalesce(sum(length(response)) OVER (ORDER BY received_at DESC, nonce DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
    FROM (
      SELECT asset, nonce, payment_id, route, pay_to, value, received_at, tx, block_number, final_at IS NOT NULL AS final, status, response, location
      FROM payment WHERE payer = $1 AND chain = $2 AND ${SETTLED} AND (received_at, nonce) < ($3, $4) ${condition}
      ORDER BY received_at DESC, nonce DESC LIMIT ${MOST_PURCHASES + 1}) AS newest) AS sized
  WHERE before < ${MOST_BYTES} ORDER BY received_at DESC, nonce DESC`;

const ALL = { name: "purchases", text: PAGE("") };
const OF_ONE = { name: "purchases-of-one", text: PAGE("AND tx = $5") };

export const createPurchaseStore = (pool: pg.Pool): PurchaseStore => ({
  async useNonce(nonce) {
    const { rowCount } = await pool.query({
      name: "sign-in",
      text: "INSERT INTO sign_in (nonce) VALUES ($1) ON CONFLICT DO NOTHING",
      values: [Buffer.from(nonce, "hex")],
    });
    return rowCount === 1;
  },
  async page(asked) {
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

/** A settled payment of a wallet, as the journal has it. */
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
  /** Null while the sale is being made. */
  readonly answer: { readonly status: number; readonly body: Uint8Array } | null;
  /** Path of the public record it bought, if any. */
  readonly location: string | null;
}

export interface AskedPurchases {
  readonly payer: Address;
  readonly network: Network;
  /** Null for the newest. */
  readonly after: Cursor | null;
  /** Only those that this transaction settled; null for all. */
  readonly transaction: Hex | null;
}

/** A page, newest first. */
interface StoredPage {
  readonly purchases: readonly StoredPurchase[];
  readonly isLast: boolean;
}

/** What a wallet that has signed in is shown. */
export interface ShownPage extends StoredPage {
  readonly wallet: Address;
}

/** What wallets bought, and which nonces are used. */
export interface PurchaseStore {
  /** Marks a nonce as used, for every process; false if it was. */
  readonly useNonce: (nonce: string) => Promise<boolean>;
  /** As many as a page may have, by their number and by the bytes of their answers; at least one if there is any. */
  readonly page: (asked: AskedPurchases) => Promise<StoredPage>;
}
