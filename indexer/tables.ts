import { integer, jsonb, onchainTable, onchainView, primaryKey, sql, text } from "ponder";
import { base64Bytes, bytes } from "./bytes.ts";
import type { Scope } from "./ledger.ts";
import { ofIndex } from "./position.ts";
import { ROWS_VERSION } from "./rows-version.ts";

export * from "./payer-tables.ts";

// No secondary index: Ponder drops and rebuilds them at every restart, and every read here is by primary key.
// Values are atomic units of USDC, of any size: sums over flash loans exceed 64 bits. Times are Unix seconds, addresses
// lower case. Of what there is a row for each payment, columns of a fixed width come first, so that none is padded.

/**
 * One row per wallet and UTC day with a transfer, written on that day only: past rows stay true for any past window.
 * Days that no window reaches back to are dropped (days.ts).
 */
export const walletDay = onchainTable(
  "wallet_day",
  (t) => ({
    /** Time of the day's last transfer. */
    lastAt: t.int8({ mode: "number" }).notNull(),
    day: t.integer().notNull(),
    /** Outgoing payments the wallet authorized by signature (EIP-3009). */
    paid: t.integer().notNull(),
    /** Those that the score counts, and their sum (`QUALIFYING_ATOMIC` in ledger.ts). */
    qualifying: t.integer().notNull(),
    /** Counterparties it paid or was paid by on that day. */
    touched: t.integer().notNull(),
    wallet: bytes(t).notNull(),
    qualifyingAtomic: t.bigint().notNull(),
    /** How many of them were last touched at most 1, 2, … days before (`TouchedDay` in ledger.ts). */
    ages: base64Bytes(t),
  }),
  (t) => ({ key: primaryKey({ columns: [t.wallet, t.day] }) }),
);

/**
 * One row per pair of wallets (low < high): the last day on which money moved between them, either way, and how much
 * each way. In the authorised scope all that follows from `paid`, but for what an escrow released of holds from before
 * the index: only these sums are here, with day 0.
 */
export const pair = onchainTable(
  "pair",
  (t) => ({
    lastDay: t.integer().notNull(),
    low: bytes(t).notNull(),
    high: bytes(t).notNull(),
    /** From low to high, and back. */
    upAtomic: t.bigint().notNull(),
    downAtomic: t.bigint().notNull(),
  }),
  (t) => ({ key: primaryKey({ columns: [t.low, t.high] }) }),
);

/**
 * One row per wallet that received something (in full scope), made a qualifying payment, or is on either side of a sum
 * that reached the floor.
 */
export const wallet = onchainTable("wallet", (t) => ({
  /** Its last qualifying payment. */
  lastPaidAt: t.int8({ mode: "number" }),
  /**
   * The wallets that its authorized payments have reached the floor for (`FLOOR_ATOMIC` in ledger.ts), and those whose
   * payments reached it for this wallet.
   */
  payees: t.integer().notNull(),
  payers: t.integer().notNull(),
  /**
   * Of these payers, when each reached the floor: how many distinct largest funders they had, and how many had none.
   */
  payerFunders: t.integer().notNull(),
  unfundedPayers: t.integer().notNull(),
  wallet: bytes(t).primaryKey(),
  lastPaidTransaction: bytes(t),
  /**
   * Who has sent it the most in total (the first to reach it wins ties), and how much; null in the authorised scope.
   */
  funder: bytes(t),
  funderAtomic: t.bigint().notNull(),
}));

/** One row per payer and payee with an authorized payment between them; a hold in an escrow is one to the merchant. */
export const paid = onchainTable(
  "paid",
  (t) => ({
    firstAt: t.int8({ mode: "number" }).notNull(),
    lastAt: t.int8({ mode: "number" }).notNull(),
    count: t.integer().notNull(),
    /** The last day on which one of them was a meeting of the two; null in the full scope, where `pair` has it. */
    metDay: t.integer(),
    payer: bytes(t).notNull(),
    payee: bytes(t).notNull(),
    lastTransaction: bytes(t).notNull(),
    atomic: t.bigint().notNull(),
    /** What of that the payee has not been paid: held in an escrow, or refunded from there. */
    unpaidAtomic: t.bigint().notNull(),
    /** The payer's largest funder when the sum reached the floor; null before that, or if it had none. */
    funder: bytes(t),
  }),
  (t) => ({ key: primaryKey({ columns: [t.payer, t.payee] }) }),
);

/**
 * The payees for which a payer's sums most recently reached the floor: ordinal n (from 0) is in slot n mod
 * `PAYEE_SLOTS`.
 */
export const payeeSlot = onchainTable(
  "payee_slot",
  (t) => ({
    slot: t.integer().notNull(),
    ordinal: t.integer().notNull(),
    payer: bytes(t).notNull(),
    payee: bytes(t).notNull(),
  }),
  (t) => ({ key: primaryKey({ columns: [t.payer, t.slot] }) }),
);

/** One row per payee and funder that `payerFunders` of the payee's row counts. */
export const payerFunder = onchainTable(
  "payer_funder",
  (t) => ({ payee: bytes(t).notNull(), funder: bytes(t).notNull() }),
  (t) => ({ key: primaryKey({ columns: [t.payee, t.funder] }) }),
);

export { head, position } from "./position.ts";

/**
 * One row: what this index covers. `rows_version`: which tables these are, for their readers. `own_from`: the addresses of
 * the service whose older transfers are in the rows, or whose older holds are not, each with the block from which on it is
 * otherwise. Beside the rows, so that a switch of the views switches it too.
 */
export const coverage = onchainView("coverage", {
  rowsVersion: integer().notNull(),
  scope: text().$type<Scope>().notNull(),
  firstBlock: integer().notNull(),
  ownFrom: jsonb().$type<Readonly<Record<`0x${string}`, number>>>().notNull(),
}).as(sql`
  select ${sql.raw(String(ROWS_VERSION))} as rows_version,
    ${sql.raw(`'${process.env.INDEX_SCOPE}'::text`)} as scope, ${sql.raw(`${process.env.FIRST_BLOCK}::int`)} as first_block,
    (select coalesce(jsonb_object_agg(address, since) filter (where since > 0), '{}')
      from (select address, greatest(from_block, escrow_from) as since from ${ofIndex("own_address")}) own) as own_from`);

/**
 * One row per payment held now in an escrow that is followed: the block of its hold. Its outcome deletes it. A payer may
 * reclaim one past an operator, which leaves the row.
 */
export const hold = onchainTable("hold", (t) => ({
  id: t.hex().primaryKey(),
  block: t.int8({ mode: "number" }).notNull(),
}));

/**
 * One row per merchant, kind of outcome and buyer that counts (handlers/escrow-record.ts): the last day of
 * one.
 */
export const escrowBuyer = onchainTable(
  "escrow_buyer",
  (t) => ({
    merchant: t.hex().notNull(),
    outcome: t.text().$type<"released" | "refunded">().notNull(),
    buyer: t.hex().notNull(),
    lastDay: t.integer().notNull(),
  }),
  (t) => ({ key: primaryKey({ columns: [t.merchant, t.outcome, t.buyer] }) }),
);

/** One row per merchant, kind of outcome and UTC day with one that counts; written on that day only, like `wallet_day`. */
export const escrowDay = onchainTable(
  "escrow_day",
  (t) => ({
    merchant: t.hex().notNull(),
    outcome: t.text().$type<"released" | "refunded">().notNull(),
    day: t.integer().notNull(),
    /** Its buyers on that day. */
    touched: t.integer().notNull(),
    /** How many of them had their last one at most 1, 2, … days before (`TouchedDay` in ledger.ts). */
    ages: base64Bytes(t),
    lastTransaction: t.hex().notNull(),
  }),
  (t) => ({ key: primaryKey({ columns: [t.merchant, t.outcome, t.day] }) }),
);
