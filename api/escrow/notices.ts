import { EventEmitter, once } from "node:events";
import type { Hex } from "../platform/wallet.ts";
import type { EscrowStore, Outcome } from "./escrow-ports.ts";

const DECIDED = "decided";

/** What this process has stored of its payments, as it happens. What others store is not heard of: look now and then. */
export interface Notices {
  /** Calls `hear` after each decision that is stored. */
  onDecided(hear: () => void): void;
  /** Resolves with what ended the payment's hold once it is stored, or with null when nobody wants to know any more. */
  ended(payment: Hex, unwanted: AbortSignal): Promise<Outcome | null>;
}

/** The same store, and notices of what it stores. */
export function withNotices(store: EscrowStore): { readonly store: EscrowStore; readonly notices: Notices } {
  const stored = new EventEmitter<Record<string, [outcome?: Outcome]>>().setMaxListeners(0);
  const told: EscrowStore = {
    ...store,
    async decide(...decision) {
      const became = await store.decide(...decision);
      if (became === "stored") stored.emit(DECIDED);
      return became;
    },
    async mined(task, outcome) {
      await store.mined(task, outcome);
      stored.emit(task.payment, outcome);
    },
  };
  const notices: Notices = {
    onDecided: (hear) => void stored.on(DECIDED, hear),
    ended: (payment, unwanted) =>
      once(stored, payment, { signal: unwanted }).then(
        ([outcome]) => outcome,
        () => null,
      ),
  };
  return { store: told, notices };
}
