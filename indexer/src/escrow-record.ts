import type { Context } from "ponder:registry";
import { escrowBuyer, escrowDay, wallet } from "ponder:schema";
import type { Address, Hex } from "../../api/platform/wallet.ts";
import { OWN_ADDRESSES } from "../environment.ts";
import { dayOf, isBetweenOthers, type Movement, NOBODY, OUTCOME_FLOOR_ATOMIC, withAge } from "../ledger.ts";

// The score's facts about a wallet as a merchant: the buyers that it served and refunded, by day.

type Database = Context["db"];

interface Outcome {
  readonly status: "released" | "refunded";
  readonly block: { readonly timestamp: bigint };
  readonly transaction: { readonly hash: Hex };
}

/**
 * Returns the buyer, which is the payer's largest funder, or `NOBODY` if it has none. Returns null if the outcome does not
 * count: dust, the service's own payment, a merchant that buys from itself or through a wallet that it funded, or a release
 * whose buyer and merchant have the same funder.
 */
async function buyerOf(db: Database, sale: Movement, status: Outcome["status"]): Promise<Address | null> {
  const { from: payer, to: merchant, value } = sale;
  if (value < OUTCOME_FLOOR_ATOMIC || !isBetweenOthers(sale, OWN_ADDRESSES)) return null;
  const funder = (await db.find(wallet, { wallet: payer }))?.funder ?? null;
  if (funder === null) return NOBODY;
  if (funder === merchant) return null;
  if (status === "released" && funder === (await db.find(wallet, { wallet: merchant }))?.funder) return null;
  return funder;
}

/** Counts the buyer on this day, unless it is already counted. */
export async function noteOutcome(
  db: Database,
  sale: Movement,
  { status: outcome, block, transaction }: Outcome,
): Promise<void> {
  const buyer = await buyerOf(db, sale, outcome);
  if (buyer === null) return;
  const [merchant, day] = [sale.to, dayOf(block.timestamp)];
  const before = await db.find(escrowBuyer, { merchant, outcome, buyer });
  if (before?.lastDay === day) return;
  await db.insert(escrowBuyer).values({ merchant, outcome, buyer, lastDay: day }).onConflictDoUpdate({ lastDay: day });
  const age = before === null ? null : day - before.lastDay;
  const lastTransaction = transaction.hash;
  await db
    .insert(escrowDay)
    .values({ merchant, outcome, day, touched: 1, ages: withAge(null, age), lastTransaction })
    .onConflictDoUpdate((row) => ({ touched: row.touched + 1, ages: withAge(row.ages, age), lastTransaction }));
}
