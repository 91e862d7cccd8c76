import type { Context } from "ponder:registry";
import { paid, payeeSlot, payerFunder, wallet } from "ponder:schema";
import { type Movement, PAYEE_SLOTS, QUALIFYING_ATOMIC, reachesFloor } from "../ledger.ts";
import { notePayer } from "./payers.ts";

// What the score needs to know about a wallet's payees: who they are, and whether anyone outside its own circle pays
// them.

type Address = `0x${string}`;
type Database = Context["db"];

const NOTHING = {
  ...{ funder: null, funderAtomic: 0n, lastPaidAt: null, lastPaidTransaction: null },
  ...{ payees: 0, payers: 0, payerFunders: 0, unfundedPayers: 0 },
};

interface Funding {
  readonly funded: Address;
  readonly funder: Address;
  /** Everything this funder has sent it so far. */
  readonly sentAtomic: bigint;
}

/** Updates a wallet's largest funder so far. */
export async function noteFunder(db: Database, { funded, funder, sentAtomic }: Funding): Promise<void> {
  const before = await db.find(wallet, { wallet: funded });
  const largest = { funder, funderAtomic: sentAtomic };
  if (!before) await db.insert(wallet).values({ ...NOTHING, wallet: funded, ...largest });
  else if (sentAtomic > before.funderAtomic) await db.update(wallet, { wallet: funded }).set(largest);
}

interface Payment extends Movement {
  /** What of it the payee has not been paid yet. */
  readonly unpaid: bigint;
  /** Null if it is no meeting, or `pair` has that. */
  readonly metDay: number | null;
  readonly block: bigint;
  readonly timestamp: bigint;
  readonly transaction: `0x${string}`;
}

/** Records an authorized payment. */
export async function recordPayment(db: Database, payment: Payment): Promise<void> {
  const { from: payer, to: payee, value, unpaid, metDay, timestamp, transaction } = payment;
  const at = Number(timestamp);
  const { atomic } = await db
    .insert(paid)
    .values({
      ...{ payer, payee, count: 1, atomic: value, unpaidAtomic: unpaid },
      ...{ firstAt: at, lastAt: at, lastTransaction: transaction, metDay },
    })
    .onConflictDoUpdate((row) => ({
      ...{ count: row.count + 1, atomic: row.atomic + value, unpaidAtomic: row.unpaidAtomic + unpaid },
      firstAt: Math.min(row.firstAt, at),
      ...(at >= row.lastAt ? { lastAt: at, lastTransaction: transaction } : {}),
      metDay: metDay ?? row.metDay,
    }));
  if (value >= QUALIFYING_ATOMIC) {
    const lastPaid = { lastPaidAt: at, lastPaidTransaction: transaction };
    await db
      .insert(wallet)
      .values({ ...NOTHING, wallet: payer, ...lastPaid })
      .onConflictDoUpdate((row) => (at >= (row.lastPaidAt ?? 0) ? lastPaid : {}));
  }
  if (reachesFloor(atomic - value, value)) await joinCounterparties(db, payment);
}

/** Makes the payee the payer's newest, and counts the payer for the payee under its current largest funder. */
async function joinCounterparties(db: Database, { from: payer, to: payee, block }: Payment): Promise<void> {
  const { payees, funder } = await db
    .insert(wallet)
    .values({ ...NOTHING, wallet: payer, payees: 1 })
    .onConflictDoUpdate((row) => ({ payees: row.payees + 1 }));
  await db.update(paid, { payer, payee }).set({ funder });

  const ordinal = payees - 1;
  await db
    .insert(payeeSlot)
    .values({ payer, slot: ordinal % PAYEE_SLOTS, payee, ordinal })
    .onConflictDoUpdate({ payee, ordinal });

  const added = funder && (await db.insert(payerFunder).values({ payee, funder }).onConflictDoNothing());
  const [funders, unfunded] = [added ? 1 : 0, funder ? 0 : 1];
  const { payers } = await db
    .insert(wallet)
    .values({ ...NOTHING, wallet: payee, payers: 1, payerFunders: funders, unfundedPayers: unfunded })
    .onConflictDoUpdate((row) => ({
      payers: row.payers + 1,
      payerFunders: row.payerFunders + funders,
      unfundedPayers: row.unfundedPayers + unfunded,
    }));
  await notePayer(db, { payer, payee, ordinal: payers - 1, block });
}
