import { onchainTable, primaryKey } from "ponder";

// No secondary index: Ponder drops and rebuilds them at every restart, and every read here is by primary key.

/** One row a wallet and UTC day with a transfer, written on that day only: past rows stay true for any past window. */
export const walletDay = onchainTable(
  "wallet_day",
  (t) => ({
    wallet: t.hex().notNull(),
    day: t.integer().notNull(),
    /** Outgoing payments that the wallet authorised by signature (EIP-3009). */
    paid: t.integer().notNull(),
    /** Counterparties that it paid or was paid by on that day. */
    touched: t.integer().notNull(),
    /** How many of them were last touched 1, 2, … days before. */
    ages: t.integer().array(),
    /** Unix time in seconds of the day's last transfer. */
    lastAt: t.int8({ mode: "number" }).notNull(),
  }),
  (t) => ({ key: primaryKey({ columns: [t.wallet, t.day] }) }),
);

/** One row two wallets (low < high): the last day on which money moved between them, either way. */
export const pair = onchainTable(
  "pair",
  (t) => ({ low: t.hex().notNull(), high: t.hex().notNull(), lastDay: t.integer().notNull() }),
  (t) => ({ key: primaryKey({ columns: [t.low, t.high] }) }),
);

/** One row: what this index covers. It stands beside the rows so that a switch of the views switches it too. */
export const coverage = onchainTable("coverage", (t) => ({
  id: t.integer().primaryKey(),
  scope: t.text().$type<"full" | "authorised">().notNull(),
  firstBlock: t.integer().notNull(),
}));
