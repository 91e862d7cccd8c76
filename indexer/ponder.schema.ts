import { int8, integer, onchainTable, onchainView, primaryKey, sql, text } from "ponder";
import { base64Bytes, bytes } from "./bytes.ts";
import { FIRST_BLOCK, SCHEMA, SCOPE } from "./environment.ts";

// No secondary index: Ponder drops and rebuilds them at every restart, and every read here is by primary key.
// Values are atomic units of USDC, of any size: sums over flash loans exceed 64 bits. Times are Unix seconds, addresses
// lower case. Of what there is a row for each payment, columns of a fixed width come first, so that none is padded.

/**
 * One row per wallet and UTC day with a transfer, written on that day only: past rows stay true for any past window.
 * Days that no window reaches back to are dropped (src/head.ts).
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
 * each way. In scope `selective` all that follows from `paid`, but for what an escrow released of holds from before
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
 * One row per wallet that received something (in scope `full`), made a qualifying payment, or is on either side of a sum
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
   * Who has sent it the most in total (the first to reach it wins ties), and how much; null in scope `selective`.
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
    /** The last day on which one of them was a meeting of the two; null in scope `full`, where `pair` has it. */
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

// What the score's look-ups begin with: who pays a payee. Rows are in scope `selective` only.

/**
 * The payers whose authorized payments most recently reached the floor for a payee: ordinal n (from 0) is in slot n mod
 * `PAYER_SLOTS`.
 */
export const payerSlot = onchainTable(
  "payer_slot",
  (t) => ({
    payee: bytes(t).notNull(),
    slot: t.integer().notNull(),
    payer: bytes(t).notNull(),
    ordinal: t.integer().notNull(),
  }),
  (t) => ({ key: primaryKey({ columns: [t.payee, t.slot] }) }),
);

/** One row per payer and payee: the block in which the payer's authorized payments reached the floor. */
export const floorBlock = onchainTable(
  "floor_block",
  (t) => ({
    payer: bytes(t).notNull(),
    payee: bytes(t).notNull(),
    block: t.int8({ mode: "number" }).notNull(),
  }),
  (t) => ({ key: primaryKey({ columns: [t.payer, t.payee] }) }),
);

/**
 * One row per merchant, kind of outcome and buyer that counts (src/escrow-record.ts): the last day of
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

/** One row per escrow contract: its roles, from `Opened`, and its sums (`EscrowSums` in escrow-ledger.ts). */
export const escrowContract = onchainTable("escrow_contract", (t) => ({
  contract: t.hex().primaryKey(),
  usdc: t.hex().notNull(),
  arbiter: t.hex().notNull(),
  feeRecipient: t.hex().notNull(),
  held: t.bigint().notNull(),
  owed: t.bigint().notNull(),
  fees: t.bigint().notNull(),
  withdrawn: t.bigint().notNull(),
}));

/**
 * One row per payment: the terms as in `Held`, and what became of it. The id is a hash that covers chain and contract
 * too.
 */
export const escrowPayment = onchainTable("escrow_payment", (t) => ({
  id: t.hex().primaryKey(),
  contract: t.hex().notNull(),
  payer: t.hex().notNull(),
  receiver: t.hex().notNull(),
  amount: t.bigint().notNull(),
  preApprovalExpiry: t.int8({ mode: "number" }).notNull(),
  authorizationExpiry: t.int8({ mode: "number" }).notNull(),
  refundExpiry: t.int8({ mode: "number" }).notNull(),
  salt: t.bigint().notNull(),
  refundableFrom: t.int8({ mode: "number" }).notNull(),
  status: t.text().$type<"held" | "released" | "refunded">().notNull(),
  heldTransaction: t.hex().notNull(),
  heldBlock: t.int8({ mode: "number" }).notNull(),
  heldAt: t.int8({ mode: "number" }).notNull(),
  outcomeTransaction: t.hex(),
  outcomeBlock: t.int8({ mode: "number" }),
  outcomeAt: t.int8({ mode: "number" }),
  /** SHA-256 of the public verdict document; zero for refunds that do not count. */
  record: t.hex(),
  /** Of a release. */
  fee: t.bigint(),
  /** Whether USDC refused the payout, so that the recipient is owed it. */
  credited: t.boolean().notNull(),
}));

/**
 * One row per payment held now, deleted by its outcome. Those past `refundableFrom` come first by key, however long the
 * history.
 */
export const escrowOpen = onchainTable(
  "escrow_open",
  (t) => ({ refundableFrom: t.int8({ mode: "number" }).notNull(), id: t.hex().notNull() }),
  (t) => ({ key: primaryKey({ columns: [t.refundableFrom, t.id] }) }),
);

const ofIndex = (table: string) => sql`${sql.identifier(SCHEMA)}.${sql.identifier(table)}`;

/**
 * One row: the last block whose transfers are in the rows, written with each live block. A reorganization takes it back
 * with the rows; Ponder's own checkpoint stays at the block that was removed.
 */
export const head = onchainTable("head", (t) => ({
  id: t.integer().primaryKey(),
  block: t.int8({ mode: "number" }).notNull(),
  at: t.int8({ mode: "number" }).notNull(),
}));

/**
 * At most one row: the last block whose transfers are in the rows. A restart removes the blocks after the safe checkpoint
 * from them. Until Ponder is ready again the safe checkpoint is the correct one; then there is no row until Ponder has
 * reached the block that was the newest at its start.
 */
export const position = onchainView("position", {
  block: int8({ mode: "number" }).notNull(),
  at: int8({ mode: "number" }).notNull(),
}).as(sql`
  select coalesce(live.block, safe.block) as block, coalesce(live.at, safe.at) as at
  from (select value ->> 'is_ready' = '1' as is_ready from ${ofIndex("_ponder_meta")} where key = 'app') app
  cross join (select substr(safe_checkpoint, 27, 16)::int8 as block, left(safe_checkpoint, 10)::int8 as at
    from ${ofIndex("_ponder_checkpoint")}) safe
  left join ${ofIndex("head")} live on is_ready and live.block > safe.block
  where live.block is not null or not is_ready`);

/** One row: what this index covers. */
export const coverage = onchainView("coverage", {
  scope: text().$type<"full" | "selective">().notNull(),
  firstBlock: integer().notNull(),
}).as(sql`select ${sql.raw(`'${SCOPE}'::text`)} as scope, ${sql.raw(`${FIRST_BLOCK}::int`)} as first_block`);
