import type { Context } from "ponder:registry";
import { floorBlock, paid, payeeSlot, payerFunder, payerSlot, wallet } from "ponder:schema";
import type { Address } from "../../api/platform/wallet.ts";
import { SCOPE } from "../environment.ts";
import { PAYEE_SLOTS, PAYER_SLOTS, QUALIFYING_ATOMIC, reachesFloor, type Seen } from "../ledger.ts";

// The score's facts about a wallet's payees: their addresses, and whether anyone outside the wallet's own circle pays them.

type Database = Context["db"];

const NOTHING = {
  ...{ funder: null, funderAtomic: 0n, lastPaidAt: null, lastPaidTransaction: null },
  ...{ payees: 0, payers: 0, payerFunders: 0, unfundedPayers: 0 },
};

interface Funding {
  readonly funded: Address;
  readonly funder: Address;
  /** The total that this funder has sent it. */
  readonly sentAtomic: bigint;
}

export async function noteFunder(db: Database, { funded, funder, sentAtomic }: Funding): Promise<void> {
  const before = await db.find(wallet, { wallet: funded });
  const largest = { funder, funderAtomic: sentAtomic };
  if (!before) await db.insert(wallet).values({ ...NOTHING, wallet: funded, ...largest });
  else if (sentAtomic > before.funderAtomic) await db.update(wallet, { wallet: funded }).set(largest);
}

interface Payment extends Seen {
  /** The part that the payee has not received yet. */
  readonly unpaid: bigint;
  /** The day of the meeting. Null if it is not a meeting, or `pair` has it. */
  readonly metDay: number | null;
}

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

/** Makes the payee the payer's newest one, and counts the payer for the payee under its current largest funder. */
async function joinCounterparties(db: Database, { from: payer, to: payee, block }: Payment): Promise<void> {
  const { payees, funder } = await db
    .insert(wallet)
    .values({ ...NOTHING, wallet: payer, payees: 1 })
    .onConflictDoUpdate((row) => ({ payees: row.payees + 1 }));
  await db.update(paid, { payer, payee }).set({ funder });

  const newest = { payee, ordinal: payees - 1 };
  await db
    .insert(payeeSlot)
    .values({ payer, slot: newest.ordinal % PAYEE_SLOTS, ...newest })
    .onConflictDoUpdate(newest);

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
  // Only scope `selective` needs them, to look up who funded the payers.
  if (SCOPE !== "selective") return;
  const joined = { payer, ordinal: payers - 1 };
  await db
    .insert(payerSlot)
    .values({ payee, slot: joined.ordinal % PAYER_SLOTS, ...joined })
    .onConflictDoUpdate(joined);
  await db.insert(floorBlock).values({ payer, payee, block: Number(block) });
}
