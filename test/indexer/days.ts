import fc from "fast-check";
import { type TouchedDay, withAge } from "../../indexer/ledger.ts";

/** A wallet's transfers: the day and the counterparty of each, in the chain's order. */
export type Touches = readonly { readonly day: number; readonly other: number }[];

/** Transfers over about 200 days with few counterparties, so that each returns after every length of gap. */
export const touches: fc.Arbitrary<Touches> = fc
  .array(fc.record({ day: fc.integer({ min: 0, max: 200 }), other: fc.integer({ min: 0, max: 7 }) }), { maxLength: 60 })
  .map((list) => list.toSorted((a, b) => a.day - b.day));

/** The rows that the handlers would write. */
export function rowsOf(history: Touches): readonly TouchedDay[] {
  const lastDay = new Map<number, number>();
  const rows = new Map<number, TouchedDay>();
  for (const { day, other } of history) {
    const before = lastDay.get(other);
    if (before === day) continue;
    lastDay.set(other, day);
    const row = rows.get(day) ?? { day, touched: 0, ages: null };
    const ages = withAge(row.ages, before === undefined ? null : day - before);
    rows.set(day, { day, touched: row.touched + 1, ages });
  }
  return [...rows.values()];
}

/** The expected count, by definition. */
export const countDistinct = (history: Touches, first: number, last: number): number =>
  new Set(history.filter(({ day }) => day >= first && day <= last).map(({ other }) => other)).size;
