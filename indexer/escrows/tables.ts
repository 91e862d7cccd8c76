import { onchainTable, primaryKey } from "ponder";

// As in ../tables.ts: no secondary index, atomic units, Unix seconds, lower case.

export { head, position } from "../position.ts";

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
