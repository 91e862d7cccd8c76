import { onchainTable, primaryKey } from "ponder";
import { bytes } from "./bytes.ts";

// What the score's look-ups begin with, in scope `selective` only: who pays a payee. No other scope has these tables.

const isSelective = process.env.INDEX_SCOPE === "selective";
/** Ponder makes a table of each export that is one. */
const inSelective = <Table>(table: Table): Table => (isSelective ? table : (null as Table));

/**
 * The payers whose authorized payments most recently reached the floor for a payee: ordinal n (from 0) is in slot n mod
 * `PAYER_SLOTS`.
 */
export const payerSlot = inSelective(
  onchainTable(
    "payer_slot",
    (t) => ({
      payee: bytes(t).notNull(),
      slot: t.integer().notNull(),
      payer: bytes(t).notNull(),
      ordinal: t.integer().notNull(),
    }),
    (t) => ({ key: primaryKey({ columns: [t.payee, t.slot] }) }),
  ),
);

/** One row per payer and payee: the block in which the payer's authorized payments reached the floor. */
export const floorBlock = inSelective(
  onchainTable(
    "floor_block",
    (t) => ({
      payer: bytes(t).notNull(),
      payee: bytes(t).notNull(),
      block: t.int8({ mode: "number" }).notNull(),
    }),
    (t) => ({ key: primaryKey({ columns: [t.payer, t.payee] }) }),
  ),
);
