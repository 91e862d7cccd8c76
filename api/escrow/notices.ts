import type { Hex } from "../kernel/wallet.ts";
import type { EscrowStore, Outcome } from "./escrow-ports.ts";

/** What this process has stored of its payments, as it happens. What others store is not heard of: look now and then. */
export interface Notices {
  /** Calls `hear` after each decision that is stored. */
  onDecided(hear: () => void): void;
  /** Resolves with what ended the payment's hold once it is stored, or with null when nobody wants to know any more. */
  ended(payment: Hex, unwanted: AbortSignal): Promise<Outcome | null>;
}

/** The same store, and notices of what it stores. */
export function withNotices(store: EscrowStore): { readonly store: EscrowStore; readonly notices: Notices } {
  const hearers: (() => void)[] = [];
  const waiting = new Map<Hex, Set<(outcome: Outcome | null) => void>>();
  const told: EscrowStore = {
    ...store,
    async decide(...decision) {
      const became = await store.decide(...decision);
      if (became === "stored") for (const hear of hearers) hear();
      return became;
    },
    async mined(task, outcome) {
      await store.mined(task, outcome);
      for (const wake of waiting.get(task.payment) ?? []) wake(outcome);
    },
  };
  const notices: Notices = {
    onDecided: (hear) => void hearers.push(hear),
    ended: (payment, unwanted) =>
      new Promise((resolve) => {
        const those = waiting.get(payment) ?? new Set();
        const giveUp = () => wake(null);
        const wake = (outcome: Outcome | null) => {
          unwanted.removeEventListener("abort", giveUp);
          those.delete(wake);
          if (those.size === 0) waiting.delete(payment);
          resolve(outcome);
        };
        waiting.set(payment, those.add(wake));
        unwanted.addEventListener("abort", giveUp);
      }),
  };
  return { store: told, notices };
}
