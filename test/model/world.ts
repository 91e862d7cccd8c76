import type { Command, Reason, Row, Run, State } from "../../api/payments/step-types.ts";
import type { Settlement } from "../../api/platform/chain/view.ts";
import type { StoredAnswer } from "../../api/platform/http/answer.ts";
import type { BatchOff, Relay, Relaying } from "./batch.ts";

/** A header with its request. Its sender may send it at any time and any number of times. */
export interface Sent {
  readonly authorization: number;
  /** Method, route, query, and body. */
  readonly asks: string;
  readonly id: string | null;
  /** A forger cannot sign. A reader of the chain has the signature but not the identifier. */
  readonly by: "payer" | "forger" | "reader" | "resolver";
  /** The same nonce signed for an amount other than the price. */
  readonly otherTerms?: true;
}

/** The possible events of one small world. By default it has two API processes, a resolver, and any delay. */
export interface World {
  readonly sent: readonly Sent[];
  /** No process crashes, no lease expires, every write is acknowledged, and the chain is always readable. */
  readonly calm?: true | "except for leases";
  readonly clock?: "stopped";
  readonly lag?: true;
  readonly handlerFails?: true;
  /** The time at which sales are made, or both ways by default. */
  readonly sells?: "immediately" | "noticed by others";
  /** Our own simulation may refuse the transfer. */
  readonly refusals?: true;
  readonly payerBroadcasts?: true;
  /** The facilitator reports one transaction, and another one settles. */
  readonly otherTransaction?: true;
  /** The payer cancels the nonce, or spends it elsewhere. */
  readonly burns?: true;
  readonly reorganization?: true;
  /**
   * Our submission may be mined without settling and leave the nonce unused. With "for good", it never settles
   * afterwards.
   */
  readonly reverts?: true | "for good";
  readonly bodyStopsFitting?: true;
  /** The journal is restored without a row, after the payment's window has closed. */
  readonly restored?: true;
  /** Payments settle in batches through our relayer instead of through an arbitrary facilitator. */
  readonly relay?: Relaying;
  /** The number of payments that the payer can afford, and the number that may be in flight. */
  readonly purse?: Purse;
  readonly apiProcesses?: number;
  readonly resolver?: "sleeps";
  /**
   * A run may pause before every command. Otherwise a lookup and its first statement are one step, and commands that
   * affect only the run (a handler, a simulation that cannot refuse) follow immediately.
   */
  readonly pauses?: "everywhere";
}

export interface Purse {
  readonly balance: number;
  readonly most: number;
}

/** A rule outside the machine (in the shell, the journal, or the reading of the chain) that is switched off. */
export type Off =
  | "checks-after-lookup"
  | "whole-fingerprint"
  | "own-simulation"
  | "window-checked-again"
  | "closed-window-is-looked-at"
  | "key-per-authorization"
  | "nonce-in-key"
  | "one-live-identifier"
  | "void-frees-identifier"
  | "removed-if-abandoned"
  | "another-authorization-fits"
  | "refusal-is-kept"
  | "most-in-flight"
  | "sum-is-covered"
  | "earlier-ones-count"
  | "leaves-with-a-live-lease"
  | "guard"
  | "settled-before-others-notice"
  | "one-transaction"
  | "found-by-nonce"
  | "paired-transfer"
  | "submitted-once"
  | "turned-away-is-not-carried"
  | "failure-at-its-block"
  | "final-block-expires"
  | "final-block-burns"
  | "refused-alone"
  | "look-begins-afterwards"
  | BatchOff;

/**
 * The state of an authorization on the chain. There is no mempool, because a signature that left may be broadcast,
 * dropped, and broadcast again until its window closes.
 */
export type OnChain = "unused" | "paid" | "paid, final" | "spent" | "spent, final";

export interface Authorization {
  readonly onChain: OnChain;
  /** The number of the settlement among the possible ones, or 0 for none. */
  readonly place: number;
  /** Whether it settled before its signature left us, broadcast by its payer or by someone else. */
  readonly withoutUs: boolean;
  /** Whether its signature has left us. */
  readonly left: boolean;
  /**
   * Whether our transaction for it was mined without settling, and whether a reorganization removed that transaction.
   */
  readonly failed: "no" | "mined" | "removed";
  /** Whether its payer got a 402. */
  readonly told: boolean;
  /** Whether its work is recorded. */
  readonly recorded: boolean;
}

export interface JournalRow {
  readonly authorization: number;
  readonly asks: string;
  readonly digest: string;
  readonly fingerprint: string;
  readonly paymentId: string | null;
  readonly state: State;
  readonly reason: Reason | null;
  readonly leaseLive: boolean;
  /** The payment's position among the payer's payments in flight, in worlds with a purse. */
  readonly entered: number;
  readonly place: number;
  readonly final: boolean;
  readonly revived: boolean;
  readonly response: StoredAnswer | null;
}

/** 0: the window is open · 1: less than its margin is left · 2: the head is past it · 3: a final block is past it. */
export type Clock = 0 | 1 | 2 | 3;

/** The state of everything except the processes. */
export interface Surroundings {
  readonly clock: Clock;
  readonly reorganized: boolean;
  readonly bodyFits: boolean;
  readonly purse: Purse | null;
  readonly authorizations: readonly Authorization[];
  readonly rows: readonly (JournalRow | null)[];
  readonly relay: Relay | null;
  /** The payments as seen by a lookup in progress, or null without one. */
  readonly older: readonly Authorization[] | null;
}

/** An event outside the gate. */
export interface Happening {
  readonly label: string;
  readonly after: Surroundings;
}

/** A run between two commands. */
export interface Process {
  readonly sent: Sent;
  readonly slot: number;
  readonly run: Run;
  readonly command:
    | Exclude<Command, { type: "answer" }>
    | { readonly type: "check"; readonly frees: boolean }
    /** Its submission waits for a batch. */
    | { readonly type: "wait" };
  /** Whether this run has the row's lease token. */
  readonly holds: boolean;
  /** Whether the payment was already dead when this run took its row. */
  readonly tookDead: boolean;
  /** Whether it has stored the settlement or taken a row that has it. */
  readonly hasNoted: boolean;
}

const UNTOUCHED: Authorization = {
  onChain: "unused",
  place: 0,
  withoutUs: false,
  left: false,
  failed: "no",
  told: false,
  recorded: false,
};

export function beginning({ sent, purse, relay: relaying }: World): Surroundings {
  const count = 1 + Math.max(...sent.map(({ authorization }) => authorization));
  const authorizations = Array.from({ length: count }, () => UNTOUCHED);
  // One more slot than authorizations, because an authorization may have two rows if the key is something else.
  const rows = Array.from({ length: count + 1 }, () => null);
  const relay = relaying ? { queue: [], transactions: [], elsewhere: null } : null;
  const surroundings = { clock: 0, reorganized: false, bodyFits: true, relay, older: null } as const;
  return { ...surroundings, purse: purse ?? null, authorizations, rows };
}

export const authorizationOf = ({ authorizations }: Surroundings, index: number): Authorization =>
  authorizations[index] ?? UNTOUCHED;

export const withAuthorization = (now: Surroundings, index: number, change: Partial<Authorization>): Surroundings => ({
  ...now,
  authorizations: now.authorizations.with(index, { ...authorizationOf(now, index), ...change }),
});

export const withRow = (now: Surroundings, slot: number, row: JournalRow | null): Surroundings => ({
  ...now,
  rows: now.rows.with(slot, row),
});

export const settlementAt = (place: number): Settlement => ({
  transaction: `0x${place}`,
  block: place,
  blockHash: `0x${place}`,
  logIndex: 0,
});

/** Returns the handler's answer to a request, identified by `location`. */
export const resultOf = (asks: string): StoredAnswer => ({ status: 200, body: new Uint8Array(), location: asks });

/** Returns the row as the gate reads it. */
export const asRead = ({ state, reason, digest, fingerprint, paymentId, leaseLive, ...row }: JournalRow): Row => ({
  state,
  reason,
  digest,
  fingerprint,
  paymentId,
  leaseLive,
  settlement: row.place === 0 ? null : settlementAt(row.place),
  final: row.final,
  revived: row.revived,
  refusal: null,
  response: row.response,
});

export const isInFlight = ({ state, leaseLive }: JournalRow): boolean =>
  state === "settling" || (state === "received" && leaseLive);

export const isPaid = ({ onChain }: Authorization): boolean => onChain === "paid" || onChain === "paid, final";

/** Returns whether the authorization can no longer settle. */
export const isDead = ({ clock }: Surroundings, { onChain }: Authorization): boolean =>
  onChain === "spent, final" || (onChain === "unused" && clock === 3);

export function canSettle({ clock, reorganized }: Surroundings, one: Authorization, world: World): boolean {
  const movable = world.reorganization === true && !reorganized;
  if (isPaid(one)) return true;
  if (one.onChain === "unused") return clock < 2 || (clock === 2 && movable && one.left);
  return one.onChain === "spent" && clock < 2 && movable;
}
