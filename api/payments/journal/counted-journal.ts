import { LRUCache } from "lru-cache";
import { elapsedMs } from "../../platform/clock.ts";
import type { PaymentKey } from "../../platform/http/route.ts";
import type { Meter } from "../../platform/metrics/meter.ts";
import type { Journal } from "../journal.ts";
import type { Write } from "../step-types.ts";

/** How many unfinished settlements to remember. A settlement that another process finishes is never looked up again. */
const TIMED = 10_000;

/** Wraps the journal and counts its writes and how long settlements take. */
export function countedJournal(journal: Journal, meter: Meter): Journal {
  const timed = createTimer(meter);
  const count = async <Rows>(rows: Promise<Rows>, state: string, reason = ""): Promise<Rows> => {
    if ((await rows) === 1) meter.payment(state, reason);
    return rows;
  };
  return {
    ...journal,
    insert: (payment, token) => count(journal.insert(payment, token), "received"),
    withhold: (payment, recorded) => count(journal.withhold(payment, recorded), "fulfilled", "bait"),
    revive: (key, token, kept) => count(journal.revive(key, token, kept), "settling"),
    async finalize(settled) {
      const rows = await journal.finalize(settled);
      for (let row = 0; row < rows; row++) meter.payment("final", "");
      return rows;
    },
    async complete(key, token, ended) {
      const answer = await journal.complete(key, token, ended);
      if (answer === null) return null;
      if (ended.settlement !== null) {
        meter.payment("settled", "");
        timed(key, "settled");
      }
      meter.payment("fulfilled", "");
      return answer;
    },
    async write(key, token, write) {
      const rows = await journal.write(key, token, write);
      const state = rows === 1 ? entered(write) : null;
      if (state !== null) {
        meter.payment(state, write.reason ?? "");
        timed(key, state);
      }
      return rows;
    },
  };
}

/** The state a write leads to; null if it only updates the settlement's position. */
function entered({ to, final }: Write): string | null {
  if (final) return "final";
  return to === "fulfilled" ? null : to;
}

/**
 * Measures the time from the write before the signature leaves the process to the write after the chain shows the
 * transfer.
 */
function createTimer(meter: Meter) {
  const submitted = new LRUCache<string, number>({ max: TIMED });
  return ({ network, payer, nonce }: PaymentKey, state: string): void => {
    const id = `${network} ${payer} ${nonce}`;
    const began = submitted.get(id);
    submitted.delete(id);
    if (state === "settled" && began !== undefined) meter.settled(network, (elapsedMs() - began) / 1000);
    if (state === "settling") submitted.set(id, began ?? elapsedMs());
  };
}
