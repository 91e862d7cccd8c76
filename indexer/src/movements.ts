import type { Context } from "ponder:registry";
import { paid, pair, walletDay } from "ponder:schema";
import type { Address, Hex } from "../../api/platform/wallet.ts";
import { COLLECTORS, FIRST_BLOCK, OWN_ADDRESSES, SCOPE, START_BLOCK } from "../environment.ts";
import {
  dayOf,
  isBetweenOthers,
  type Movement,
  orderedPair,
  QUALIFYING_ATOMIC,
  type Seen,
  withAge,
} from "../ledger.ts";
import { noteFunder, recordPayment } from "./payments.ts";

// Use only find, insert, and update: raw SQL in a handler empties Ponder's row cache and makes a backfill three times slower.

type Database = Context["db"];

/** `fresh` is true for the first touch of a day. `age` is the days since the pair's previous touch, or null without one. */
interface Touch {
  readonly fresh: boolean;
  readonly age: number | null;
}
const NO_TOUCH: Touch = { fresh: false, age: null };

/** Returns the touch of a meeting, given the last day on which the two wallets met. */
const touchOn = (day: number, lastDay: number | null): Touch => {
  const fresh = lastDay !== day;
  return { fresh, age: fresh && lastDay !== null ? day - lastDay : null };
};

/** Returns null for dust, which anyone could send to many wallets at almost no cost. */
const meetingDayOf = ({ value, timestamp }: Seen): number | null =>
  value >= QUALIFYING_ATOMIC ? dayOf(timestamp) : null;

interface Meeting {
  /** Null if this is not a meeting, because only dust arrives, or money that was sent earlier. */
  readonly day: number | null;
  /** The amount that arrives. */
  readonly sent: bigint;
}

/** Records a meeting in `pair`, and the receiver's largest funder. */
async function meet(db: Database, { from, to }: Movement, { day, sent }: Meeting): Promise<Touch> {
  const key = orderedPair(from, to);
  const way = from === key.low ? "upAtomic" : "downAtomic";
  const before: { lastDay: number | null } = { lastDay: null };
  const { [way]: sentAtomic } = await db
    .insert(pair)
    // Day 0 is before every window.
    .values({ ...key, upAtomic: 0n, downAtomic: 0n, lastDay: day ?? 0, [way]: sent })
    .onConflictDoUpdate((row) => {
      before.lastDay = row.lastDay;
      return { lastDay: day ?? row.lastDay, [way]: row[way] + sent };
    });
  // Authorized payments alone do not show who funds a wallet.
  if (SCOPE === "full" && sent > 0n) await noteFunder(db, { funded: to, funder: from, sentAtomic });
  return day === null ? NO_TOUCH : touchOn(day, before.lastDay);
}

/** In scope `selective`, every meeting is a payment, so `paid` has the day on which the two last met. */
async function touchOf(db: Database, seen: Seen, sent: bigint): Promise<Touch> {
  const day = meetingDayOf(seen);
  if (SCOPE === "full") return meet(db, seen, { day, sent });
  if (day === null) return NO_TOUCH;
  const there = await db.find(paid, { payer: seen.from, payee: seen.to });
  const back = await db.find(paid, { payer: seen.to, payee: seen.from });
  const days = [there?.metDay ?? null, back?.metDay ?? null].filter((one) => one !== null);
  return touchOn(day, days.length === 0 ? null : Math.max(...days));
}

async function addToDays(db: Database, seen: Seen, touch: Touch): Promise<void> {
  const lastAt = Number(seen.timestamp);
  for (const wallet of [seen.from, seen.to]) {
    const paid = seen.authorized && wallet === seen.from ? 1 : 0;
    const qualifying = paid === 1 && seen.value >= QUALIFYING_ATOMIC ? 1 : 0;
    const qualifyingAtomic = qualifying === 1 ? seen.value : 0n;
    const touched = touch.fresh ? 1 : 0;
    const first = { paid, qualifying, qualifyingAtomic, touched, ages: withAge(null, touch.age), lastAt };
    await db
      .insert(walletDay)
      .values({ wallet, day: dayOf(seen.timestamp), ...first })
      .onConflictDoUpdate((row) => ({
        paid: row.paid + paid,
        qualifying: row.qualifying + qualifying,
        qualifyingAtomic: row.qualifyingAtomic + qualifyingAtomic,
        touched: row.touched + touched,
        ages: withAge(row.ages, touch.age),
        lastAt: Math.max(row.lastAt, lastAt),
      }));
  }
}

// All operators share base/commerce-payments' collector. `Held` records our holds, and precedes the money in the same
// transaction. That transfer to the collector must not count as a second payment.

type Transfer = Pick<Seen, "from" | "to" | "value" | "transaction">;

/** Ponder commits only whole blocks, so memory suffices. */
let awaited: Transfer | null = null;

/** Whether a contract is an operator, which pays fees immediately and whose payers' money goes to the collector. */
export const isOperator = (contract: Address): boolean => COLLECTORS.has(contract);

/** Records that the next transfer is the money of this hold, if the contract is an operator. */
export function awaitMoney(contract: Address, hold: Omit<Transfer, "to">): void {
  const to = COLLECTORS.get(contract);
  awaited = to === undefined ? null : { ...hold, to };
}

/** Whether an authorized transfer is the money of the hold before it. */
function isMoneyOfHold({ from, to, value, transaction }: Transfer): boolean {
  if (awaited === null || awaited.transaction !== transaction) return false;
  if (awaited.from !== from || awaited.to !== to || awaited.value !== value) return false;
  awaited = null;
  return true;
}

const metDayOf = (seen: Seen): number | null => (SCOPE === "full" ? null : meetingDayOf(seen));

export async function recordTransfer(db: Database, seen: Seen): Promise<void> {
  if (!isBetweenOthers(seen, OWN_ADDRESSES)) return;
  if (seen.authorized && isMoneyOfHold(seen)) return;
  await addToDays(db, seen, await touchOf(db, seen, seen.value));
  if (seen.authorized) await recordPayment(db, { ...seen, unpaid: 0n, metDay: metDayOf(seen) });
}

interface Placed {
  readonly block: { readonly number: bigint; readonly timestamp: bigint };
  readonly transaction: { readonly hash: Hex };
  /** Whether the money went through a contract whose transfers count. */
  readonly isCollected: boolean;
}

/**
 * Records a hold in an escrow, which is an authorized payment to the merchant that the merchant has not received yet. A hold
 * within the blocks of a preloaded history comes late. It does not count as a meeting on its day, because later days were
 * already counted without it. If it was collected, the history has it as a payment to the collector.
 */
export async function recordHold(
  db: Database,
  { from, to, value }: Movement,
  { block, transaction, isCollected }: Placed,
): Promise<void> {
  const { number, timestamp } = block;
  const seen: Seen = { from, to, value, authorized: true, block: number, timestamp, transaction: transaction.hash };
  if (number < FIRST_BLOCK || !isBetweenOthers(seen, OWN_ADDRESSES)) return;
  const isLate = number < START_BLOCK;
  if (!isLate || !isCollected) await addToDays(db, seen, isLate ? NO_TOUCH : await touchOf(db, seen, 0n));
  await recordPayment(db, { ...seen, unpaid: value, metDay: isLate ? null : metDayOf(seen) });
}

/** Records the release of a hold from block `heldBlock`, which may be older than the rows, including the fee. */
export async function recordRelease(
  db: Database,
  movement: Movement,
  { block, heldBlock }: Pick<Placed, "block"> & { readonly heldBlock: number },
): Promise<void> {
  if (block.number < FIRST_BLOCK || !isBetweenOthers(movement, OWN_ADDRESSES)) return;
  const isEarlier = heldBlock < FIRST_BLOCK;
  if (SCOPE === "full" || isEarlier) await meet(db, movement, { day: null, sent: movement.value });
  if (isEarlier) return;
  const { from: payer, to: payee, value } = movement;
  await db.update(paid, { payer, payee }).set((row) => ({ unpaidAtomic: row.unpaidAtomic - value }));
}
