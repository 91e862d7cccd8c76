import {
  MAX_POINTS,
  PAYMENT_COUNT_BANDS,
  PAYMENT_VALUE_BANDS,
  PAYMENTS_PER_COUNTERPARTY,
  POINTS_PER_WEEK,
  pointsIn,
  RECENCY_BANDS,
} from "./bands.ts";
import type { ChainFacts, Day, ScoreFacts } from "./facts.ts";
import { type Fact, inTransaction, type Judged } from "./record.ts";

const DAY_MS = 86_400_000;

/** Totals of the qualifying payments in the window; `value` is in atomic USDC. */
export const paymentTotals = ({
  payments: { days },
}: ChainFacts): { readonly count: number; readonly value: bigint } => ({
  count: days.reduce((sum, { count }) => sum + count, 0),
  value: days.reduce((sum, { value }) => sum + BigInt(value), 0n),
});

/** Returns the corresponding fact, or an empty list without payments. */
export function paymentsFact(
  chain: ChainFacts,
  { considered, counts }: { readonly considered: number; readonly counts: boolean },
): readonly Fact[] {
  const { count, value } = paymentTotals(chain);
  const { last } = chain.payments;
  if (last === null) return [];
  return [
    { kind: "payments", counts, count, considered, value: String(value), ...chain.window, ...inTransaction(last.tx) },
  ];
}

export function judgePayments({ chain }: ScoreFacts, counterparties: number): Judged {
  const { count, value } = paymentTotals(chain);
  const considered = Math.min(count, PAYMENTS_PER_COUNTERPARTY * counterparties);
  const points = Math.min(pointsIn(PAYMENT_COUNT_BANDS, considered), pointsIn(PAYMENT_VALUE_BANDS, value));
  return { points, facts: paymentsFact(chain, { considered, counts: points > 0 }) };
}

/** Returns the ISO 8601 week of a day, such as `2026-W48`: the week belongs to the year of its Thursday. */
function isoWeek(day: Day): string {
  const date = new Date(day);
  const thursday = new Date(date.getTime() + (4 - (date.getUTCDay() || 7)) * DAY_MS);
  const year = thursday.getUTCFullYear();
  const week = Math.floor((thursday.getTime() - Date.UTC(year, 0, 1)) / (7 * DAY_MS)) + 1;
  return `${year}-W${String(week).padStart(2, "0")}`;
}

/** Returns the ISO weeks with a qualifying payment, oldest first; days are oldest first. */
export const activeWeeks = ({ payments: { days } }: ChainFacts): readonly string[] => [
  ...new Set(days.map(({ day }) => isoWeek(day))),
];

export function judgeWeeks({ chain }: ScoreFacts): Judged {
  const { last } = chain.payments;
  const weeks = activeWeeks(chain);
  if (last === null) return { points: 0, facts: [] };
  return {
    points: Math.min(weeks.length * POINTS_PER_WEEK, MAX_POINTS.active_weeks),
    facts: [{ kind: "weeks", counts: true, weeks, ...inTransaction(last.tx) }],
  };
}

export function judgeRecency({ chain, as_of }: ScoreFacts): Judged {
  const { last } = chain.payments;
  if (last === null) return { points: 0, facts: [] };
  const days = Math.floor((Date.parse(as_of) - Date.parse(last.at)) / DAY_MS);
  const points = RECENCY_BANDS.find(({ withinDays }) => days <= withinDays)?.points ?? 0;
  return {
    points,
    facts: [{ kind: "last_payment", counts: points > 0, at: last.at, days, ...inTransaction(last.tx) }],
  };
}
