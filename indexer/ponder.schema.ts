import { int8, integer, onchainTable, onchainView, primaryKey, sql, text } from "ponder";
import { FIRST_BLOCK, SCHEMA, SCOPE } from "./environment.ts";

type Builders = Parameters<Extract<Parameters<typeof onchainTable>[1], (t: never) => unknown>>[0];
type Hex = `0x${string}`;

const int = (t: Builders) => t.integer().notNull();
/** Unix seconds or a block number. */
const big = (t: Builders) => t.int8({ mode: "number" }).notNull();
/** Atomic units of USDC, of any size: sums over flash loans exceed 64 bits. */
const atomic = (t: Builders) => t.bigint().notNull();
const hex = (t: Builders) => t.hex().notNull();

/** Lower-case hexadecimal text with `0x` in handlers, and bytes, which are half as long, in the database. */
const bytes = (t: Builders) =>
  t.customType<{ data: Hex; driverData: Buffer }>({
    dataType: () => "bytea",
    toDriver: (hex) => Buffer.from(hex.slice(2), "hex"),
    fromDriver: (stored) => `0x${stored.toString("hex")}`,
  })();

const account = (t: Builders) => bytes(t).notNull();

/** Base64 text in handlers, and bytes in the database. */
const base64Bytes = (t: Builders) =>
  t.customType<{ data: string; driverData: Buffer }>({
    dataType: () => "bytea",
    toDriver: (text) => Buffer.from(text, "base64"),
    fromDriver: (stored) => stored.toString("base64"),
  })();

// No secondary indexes: Ponder would drop and rebuild them at every restart, and every read is by primary key. In tables with
// one row per payment, fixed-width columns come first to avoid padding.

/**
 * One row per wallet and UTC day with a transfer, written only on that day, so past rows stay valid for any past window.
 * Days before every window are dropped (src/usdc.ts).
 */
export const walletDay = onchainTable(
  "wallet_day",
  (t) => ({
    /** Time of the day's last transfer. */
    lastAt: big(t),
    day: int(t),
    /** Outgoing payments that the wallet authorized by signature (EIP-3009). */
    paid: int(t),
    /** The number of them that the score counts. Their sum is below. */
    qualifying: int(t),
    /** The number of counterparties that it paid or was paid by. */
    touched: int(t),
    wallet: account(t),
    qualifyingAtomic: atomic(t),
    /** `TouchedDay` in ledger.ts. */
    ages: base64Bytes(t),
  }),
  (t) => ({ key: primaryKey({ columns: [t.wallet, t.day] }) }),
);

/**
 * One row per pair of wallets: the last day on which money moved between them, and the sums from low to high (`up`) and back
 * (`down`). In scope `selective` all of it follows from `paid`, except escrow releases of holds from before the index. Only
 * these sums are here, with day 0.
 */
export const pair = onchainTable(
  "pair",
  (t) => ({ lastDay: int(t), low: account(t), high: account(t), upAtomic: atomic(t), downAtomic: atomic(t) }),
  (t) => ({ key: primaryKey({ columns: [t.low, t.high] }) }),
);

/**
 * One row per wallet that received something (in scope `full`), made a qualifying payment, or is on either side of a sum
 * that reached the floor (`FLOOR_ATOMIC` in ledger.ts).
 */
export const wallet = onchainTable("wallet", (t) => ({
  /** Time of its last qualifying payment. */
  lastPaidAt: t.int8({ mode: "number" }),
  /** The number of payees for which its payments reached the floor, and of payers whose payments to it reached the floor. */
  payees: int(t),
  payers: int(t),
  /** The distinct largest funders of these payers when each reached the floor, and the number of payers without one. */
  payerFunders: int(t),
  unfundedPayers: int(t),
  wallet: bytes(t).primaryKey(),
  lastPaidTransaction: bytes(t),
  /** The wallet that sent it the most in total (the first to reach it wins ties), and the sum; null in scope `selective`. */
  funder: bytes(t),
  funderAtomic: atomic(t),
}));

/** One row per payer and payee with an authorized payment. An escrow hold is a payment to the merchant. */
export const paid = onchainTable(
  "paid",
  (t) => ({
    firstAt: big(t),
    lastAt: big(t),
    count: int(t),
    /** The last day on which one of the payments was a meeting; null in scope `full`, where `pair` has it. */
    metDay: t.integer(),
    payer: account(t),
    payee: account(t),
    lastTransaction: account(t),
    atomic: atomic(t),
    /** The part that the payee has not received, because an escrow holds or refunded it. */
    unpaidAtomic: atomic(t),
    /** The payer's largest funder when the sum reached the floor; null before that, or if it had none. */
    funder: bytes(t),
  }),
  (t) => ({ key: primaryKey({ columns: [t.payer, t.payee] }) }),
);

/** The latest payees for which a payer's sums reached the floor. Ordinal n (from 0) is in slot n mod `PAYEE_SLOTS`. */
export const payeeSlot = onchainTable(
  "payee_slot",
  (t) => ({ slot: int(t), ordinal: int(t), payer: account(t), payee: account(t) }),
  (t) => ({ key: primaryKey({ columns: [t.payer, t.slot] }) }),
);

/** One row per payee and funder that `payerFunders` of the payee's row counts. */
export const payerFunder = onchainTable(
  "payer_funder",
  (t) => ({ payee: account(t), funder: account(t) }),
  (t) => ({ key: primaryKey({ columns: [t.payee, t.funder] }) }),
);

// The payers of a payee, with which the score's look-ups begin. Only scope `selective` has rows.

/** The latest payers whose payments to a payee reached the floor. Ordinal n (from 0) is in slot n mod `PAYER_SLOTS`. */
export const payerSlot = onchainTable(
  "payer_slot",
  (t) => ({ payee: account(t), slot: int(t), payer: account(t), ordinal: int(t) }),
  (t) => ({ key: primaryKey({ columns: [t.payee, t.slot] }) }),
);

/** The block in which a payer's authorized payments to a payee reached the floor. */
export const floorBlock = onchainTable(
  "floor_block",
  (t) => ({ payer: account(t), payee: account(t), block: big(t) }),
  (t) => ({ key: primaryKey({ columns: [t.payer, t.payee] }) }),
);

/** The last day of an outcome, one row per merchant, kind of outcome, and buyer that counts (src/escrow-record.ts). */
export const escrowBuyer = onchainTable(
  "escrow_buyer",
  (t) => ({
    merchant: hex(t),
    outcome: t.text().$type<"released" | "refunded">().notNull(),
    buyer: hex(t),
    lastDay: int(t),
  }),
  (t) => ({ key: primaryKey({ columns: [t.merchant, t.outcome, t.buyer] }) }),
);

/** One row per merchant, kind of outcome, and UTC day with a counted outcome, written only on that day like `wallet_day`. */
export const escrowDay = onchainTable(
  "escrow_day",
  (t) => ({
    merchant: hex(t),
    outcome: t.text().$type<"released" | "refunded">().notNull(),
    day: int(t),
    /** The number of its buyers on that day, and their `ages` as in `wallet_day`. */
    touched: int(t),
    ages: base64Bytes(t),
    lastTransaction: hex(t),
  }),
  (t) => ({ key: primaryKey({ columns: [t.merchant, t.outcome, t.day] }) }),
);

/** One row per escrow contract: its roles, from `Opened`, and its sums. USDC that arrived without a hold is not counted. */
export const escrowContract = onchainTable("escrow_contract", (t) => ({
  contract: t.hex().primaryKey(),
  ...{ usdc: hex(t), arbiter: hex(t), feeRecipient: hex(t) },
  ...{ held: atomic(t), owed: atomic(t), fees: atomic(t), withdrawn: atomic(t) },
}));

/** One row per payment: its terms from `Held`, and its outcome. The id is a hash that also covers the chain and contract. */
export const escrowPayment = onchainTable("escrow_payment", (t) => ({
  id: t.hex().primaryKey(),
  ...{ contract: hex(t), payer: hex(t), receiver: hex(t), amount: atomic(t) },
  ...{ preApprovalExpiry: big(t), authorizationExpiry: big(t), refundExpiry: big(t) },
  ...{ salt: atomic(t), refundableFrom: big(t) },
  status: t.text().$type<"held" | "released" | "refunded">().notNull(),
  ...{ heldTransaction: hex(t), heldBlock: big(t), heldAt: big(t) },
  outcomeTransaction: t.hex(),
  outcomeBlock: t.int8({ mode: "number" }),
  outcomeAt: t.int8({ mode: "number" }),
  /** SHA-256 of the public verdict document; zero for refunds that do not count. */
  record: t.hex(),
  /** The fee of a release. */
  fee: t.bigint(),
  /** Whether USDC refused the payout, so that the recipient is owed it. */
  credited: t.boolean().notNull(),
}));

/** One row per payment that is held now. By key, payments past `refundableFrom` come first. */
export const escrowOpen = onchainTable(
  "escrow_open",
  (t) => ({ refundableFrom: big(t), id: hex(t) }),
  (t) => ({ key: primaryKey({ columns: [t.refundableFrom, t.id] }) }),
);

/**
 * One row: the last block whose transfers are in the rows, written with each live block. A reorganization reverts it with the
 * rows, whereas Ponder's own checkpoint stays at the removed block.
 */
export const head = onchainTable("head", (t) => ({ id: t.integer().primaryKey(), block: big(t), at: big(t) }));

const ofIndex = (table: string) => sql`${sql.identifier(SCHEMA)}.${sql.identifier(table)}`;

/**
 * At most one row: the last block whose transfers are in the rows. A restart removes the blocks after the safe checkpoint, so
 * the safe checkpoint is correct until Ponder is ready again. After that, there is no row until Ponder has reached the block
 * that was the newest at its start.
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

/** One row: the scope and first block of this index. */
export const coverage = onchainView("coverage", {
  scope: text().$type<"full" | "selective">().notNull(),
  firstBlock: integer().notNull(),
}).as(sql`select ${sql.raw(`'${SCOPE}'::text`)} as scope, ${sql.raw(`${FIRST_BLOCK}::int`)} as first_block`);
