import { z } from "zod";
import { count } from "../platform/http/schema.ts";
import { ACTIVITY_DAYS, type Activity, COUNTERPARTY_FLOOR } from "../platform/index/activity.ts";
import { MAIN_NETWORK, NETWORKS } from "../platform/networks.ts";

const about = {
  counterparty_floor: z
    .literal(COUNTERPARTY_FLOOR)
    .meta({ description: "The smallest transfer that counts as a counterparty's, in USDC." }),
  window_days: z.literal(ACTIVITY_DAYS),
  note: z.string(),
};

/** A wallet's on-chain activity, as its verification record shows it. */
export const ACTIVITY = z.discriminatedUnion("available", [
  z.object({
    available: z.literal(true),
    settled_payments: count,
    distinct_counterparties: count,
    last_seen_days: count.nullable(),
    ...about,
  }),
  z.object({
    available: z.literal(false),
    settled_payments: z.null(),
    distinct_counterparties: z.null(),
    last_seen_days: z.null(),
    ...about,
  }),
]);

export type ActivityEntry = z.infer<typeof ACTIVITY>;

/** If the activity is null, the index is unavailable. */
export function activityEntry(activity: Activity | null): ActivityEntry {
  if (activity === null) {
    return {
      available: false,
      settled_payments: null,
      distinct_counterparties: null,
      counterparty_floor: COUNTERPARTY_FLOOR,
      last_seen_days: null,
      window_days: ACTIVITY_DAYS,
      note: "Activity is temporarily unavailable: the index of on-chain payments is down. Certificates are not affected.",
    };
  }
  const { settledPayments, distinctCounterparties, lastSeenDays, firstDay, lastDay, scope, firstBlock } = activity;
  const what = scope === "full" ? "all USDC transfers" : "authorized USDC payments only";
  return {
    available: true,
    settled_payments: settledPayments,
    distinct_counterparties: distinctCounterparties,
    counterparty_floor: COUNTERPARTY_FLOOR,
    last_seen_days: lastSeenDays,
    window_days: ACTIVITY_DAYS,
    note: `Public USDC history on ${NETWORKS[MAIN_NETWORK].name} from ${firstDay} to ${lastDay} (UTC days), ${what}, indexed from block ${firstBlock}. Counterparties exclude this service, the wallet itself, and transfers below ${COUNTERPARTY_FLOOR} USDC.`,
  };
}
