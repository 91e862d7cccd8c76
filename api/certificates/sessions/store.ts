import type pg from "pg";
import { KEY, keyValues } from "../../payments/index.ts";
import { bytes, hex, inTransaction, type Statement, type Transaction } from "../../platform/db/connection.ts";
import type { PaymentKey } from "../../platform/http/route.ts";
import { NETWORKS, networkOfChain } from "../../platform/networks.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import type { Result } from "../certificate.ts";
import type { BehavioralProduct } from "../products.ts";
import { asServed, type Caller, type Challenge, type Door, type Sender, type Served, type Session } from "./session.ts";

interface Columns {
  id: string;
  product: BehavioralProduct;
  wallet: Buffer;
  chain: number;
  asset: Buffer;
  nonce: Buffer;
  tx: Buffer;
  block_number: string;
  amount: string;
  pay_to: Buffer;
  version: "v1" | "v2";
  bait_first: boolean;
  decoy: Buffer;
  wallet_decoy: Buffer;
  started_at: Date;
  lapses_at: Date;
  served: Record<Door, { control: string | null; bait: string | null; last: Served["last"] }>;
  control_nonce: Buffer | null;
  control_tx: Buffer | null;
  control_token: string | null;
  verdict: Result | null;
  token_used: boolean;
  token_shared: boolean;
  sender: Buffer;
}

/** SQL condition that the session's wallet has used a token since the session started, this session's or another's. */
const tokenUsed = (s: string, table: SessionTable) => `EXISTS (SELECT FROM ${table} o WHERE o.wallet = ${s}.wallet
  AND o.served -> 'token' ->> 'last' IS NOT NULL AND coalesce(o.verdict_at, o.lapses_at) > ${s}.started_at)`;

const columns = (
  table: SessionTable,
) => `s.id, s.product, s.wallet, s.chain, s.asset, s.nonce, s.tx, s.block_number, s.amount, s.pay_to, s.version, s.bait_first, s.decoy, s.wallet_decoy,
  s.started_at, s.lapses_at, s.served, s.verdict, control.nonce AS control_nonce, control.tx AS control_tx,
  control.input ->> 'token' AS control_token, s.token_shared, s.sender, ${tokenUsed("s", table)} AS token_used`;
/** A control whose settlement is permanently gone no longer counts. */
const from = (table: SessionTable) => `${table} s LEFT JOIN payment control
  ON control.chain = s.chain AND control.asset = s.asset AND control.payer = s.wallet AND control.nonce = s.control_nonce
    AND control.state <> 'void'`;

/** The table of sessions. Nothing published is read from the rehearsals' table. */
export type SessionTable = "test_session" | "rehearsal_session";

export type SessionStore = ReturnType<typeof createSessionStore>;

/** Creates the store of behavioral tests' sessions. A token is stored only as its SHA-256. */
export function createSessionStore(pool: pg.Pool, table: SessionTable = "test_session") {
  const COLUMNS = columns(table);
  const FROM = from(table);
  const mode = table === "test_session" ? "test" : "rehearsal";
  const first = async (text: string, values: unknown[]): Promise<Session | null> => {
    const { rows } = await pool.query<Columns>(text, values);
    return rows[0] ? parse(rows[0], mode) : null;
  };
  return {
    adding(session: Session, tokenSha256: Buffer): Statement {
      const { payment, settlement, version } = session.entry;
      return {
        text: `INSERT INTO ${table} (id, product, wallet, token_sha256, chain, asset, nonce, tx, block_number, amount, pay_to, version, bait_first, decoy, wallet_decoy,
           started_at, lapses_at, served, sender)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`,
        values: [
          session.id,
          session.product,
          bytes(session.wallet),
          tokenSha256,
          NETWORKS[payment.network].chainId,
          bytes(payment.asset),
          bytes(payment.nonce),
          bytes(settlement.transaction),
          settlement.block,
          settlement.amountAtomic.toString(),
          bytes(settlement.payTo),
          version,
          session.baitFirst,
          bytes(session.decoys.token),
          bytes(session.decoys.wallet),
          session.startedAt,
          session.lapsesAt,
          JSON.stringify(session.served),
          session.sender,
        ],
      };
    },

    /**
     * Returns the session of the token. Without a token, returns the wallet's newest open session, or else its newest
     * with a verdict, or else its newest.
     */
    find: (
      product: BehavioralProduct,
      wallet: Address,
      { tokenSha256, now }: { readonly tokenSha256: Buffer | null; readonly now: Date },
    ) =>
      tokenSha256 === null
        ? first(
            `SELECT ${COLUMNS} FROM ${FROM} WHERE s.wallet = $1 AND s.product = $2
             ORDER BY (s.verdict IS NULL AND s.lapses_at > $3) DESC, (s.verdict IS NOT NULL) DESC, s.started_at DESC LIMIT 1`,
            [bytes(wallet), product, now],
          )
        : first(`SELECT ${COLUMNS} FROM ${FROM} WHERE s.wallet = $1 AND s.product = $2 AND s.token_sha256 = $3`, [
            bytes(wallet),
            product,
            tokenSha256,
          ]),

    byId: (id: string) => first(`SELECT ${COLUMNS} FROM ${FROM} WHERE s.id = $1`, [id]),

    /**
     * Serves the challenge that `choose` returns, under a lock, and returns the updated session, or null if it returns
     * none.
     */
    serve: (
      id: string,
      { door, sender, now }: Caller & { readonly now: Date },
      choose: (session: Session) => Challenge | null,
    ) =>
      inTransaction(pool, async (client) => {
        const { rows } = await client.query<Columns>(`SELECT ${COLUMNS} FROM ${FROM} WHERE s.id = $1 FOR UPDATE OF s`, [
          id,
        ]);
        const session = rows[0] ? parse(rows[0], mode) : null;
        const challenge = session && choose(session);
        if (!session || !challenge) return null;
        const served = asServed(session, { door, sender, challenge }, now);
        const text = `UPDATE ${table} SET served = $2, sender = $3 WHERE id = $1`;
        await client.query(text, [id, JSON.stringify(served.served), served.sender]);
        return { session: served, challenge };
      }),

    /** Returns the write that records the settled control. */
    settling: (id: string, { nonce, transaction }: { readonly nonce: Hex; readonly transaction: Hex }): Statement => ({
      text: `UPDATE ${table} SET control_nonce = $2, control_tx = $3 WHERE id = $1`,
      values: [id, bytes(nonce), bytes(transaction)],
    }),

    /**
     * Sets the verdict unless there is one. Does not set it if it comes from the wallet's door while the wallet uses a
     * token, or if it is a FAIL for which `isElsewhere` is true. Returns the number of rows changed (0 or 1).
     */
    async conclude(
      id: string,
      { verdict, door, sender, now }: Caller & { readonly verdict: Result; readonly now: Date },
      transaction: Transaction,
    ): Promise<number> {
      // The row's own columns show whether its token was used, because they are read again if the update had to wait
      // for it.
      const { rowCount } = await transaction.query(
        `UPDATE ${table} SET verdict = $2, verdict_at = $3 WHERE id = $1 AND verdict IS NULL AND lapses_at > $3
           AND NOT ($2 = 'fail' AND $4 = 'token' AND token_shared AND sender <> $5)
           AND ($4 = 'token' OR (served -> 'token' ->> 'last' IS NULL AND NOT ${tokenUsed(table, table)}))`,
        [id, verdict, now, door, sender],
      );
      return rowCount ?? 0;
    },

    /**
     * Records that the session's token is sent to this sender. If it is not the session's own, the token is shared from
     * then on.
     */
    async tell(id: string, sender: Sender): Promise<void> {
      const text = `UPDATE ${table} SET token_shared = true WHERE id = $1 AND NOT token_shared AND sender <> $2`;
      await pool.query(text, [id, sender]);
    },

    async end(id: string, now: Date): Promise<void> {
      const text = `UPDATE ${table} SET lapses_at = $2 WHERE id = $1 AND verdict IS NULL AND lapses_at > $2`;
      await pool.query(text, [id, now]);
    },

    /** Returns the write that deletes the signature of a payment that was never submitted. */
    wiping: (payment: PaymentKey): Statement => ({
      text: `UPDATE payment SET encrypted_signature = NULL WHERE ${KEY} AND reason = 'bait'`,
      values: [...keyValues(payment)],
    }),

    inTransaction: <T>(work: (transaction: Transaction) => Promise<T>): Promise<T> =>
      inTransaction(pool, (client) => work({ query: (text, values) => client.query(text, [...values]) })),
  };
}

function parse(c: Columns, mode: Session["mode"]): Session {
  const network = networkOfChain(c.chain);
  const served = ({ control, bait, last }: Columns["served"][Door]): Served => ({
    control: control === null ? null : new Date(control),
    bait: bait === null ? null : new Date(bait),
    last,
  });
  return {
    id: c.id,
    product: c.product,
    mode,
    wallet: hex(c.wallet),
    entry: {
      payment: { network, asset: hex(c.asset), payer: hex(c.wallet), nonce: hex(c.nonce) },
      version: c.version,
      settlement: {
        network,
        transaction: hex(c.tx),
        block: Number(c.block_number),
        amountAtomic: BigInt(c.amount),
        payTo: hex(c.pay_to),
      },
    },
    baitFirst: c.bait_first,
    decoys: { token: hex(c.decoy), wallet: hex(c.wallet_decoy) },
    startedAt: c.started_at,
    lapsesAt: c.lapses_at,
    served: { token: served(c.served.token), wallet: served(c.served.wallet) },
    control:
      c.control_nonce && c.control_tx
        ? {
            nonce: hex(c.control_nonce),
            transaction: hex(c.control_tx),
            door: c.control_token === null ? "wallet" : "token",
          }
        : null,
    verdict: c.verdict,
    tokenUsed: c.token_used,
    tokenShared: c.token_shared,
    sender: c.sender,
  };
}
