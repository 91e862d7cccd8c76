import type { Command, Reason, Row, Run, State } from "../../api/payments/step-types.ts";
import type { Settlement } from "../../api/platform/chain/view.ts";
import type { StoredAnswer } from "../../api/platform/http/answer.ts";
import type { BatchOff, Relay, Relaying } from "./batch.ts";

/** A header with its request. Who has it may send it at any time, as often as it likes. */
export interface Sent {
  readonly authorization: number;
  /** Method, route, query and body. */
  readonly asks: string;
  readonly id: string | null;
  /** A forger cannot sign; a reader of the chain has the signature, not the identifier. */
  readonly by: "payer" | "forger" | "reader" | "resolver";
  /** The same nonce, signed for an amount that is not the price. */
  readonly otherTerms?: true;
}

/** What may happen in one small world. Unless it says otherwise there are two API processes, a resolver, and any delay. */
export interface World {
  readonly sent: readonly Sent[];
  /** Nobody crashes, no lease runs out, no write goes unacknowledged, and the chain can always be read. */
  readonly calm?: true | "except for leases";
  readonly clock?: "stands still";
  readonly lag?: true;
  readonly handlerFails?: true;
  /** How sales are made, if not both ways. */
  readonly sells?: "at once" | "noticed by others";
  /** Our own simulation may refuse the transfer. */
  readonly refusals?: true;
  readonly payerBroadcasts?: true;
  /** A facilitator reports one transaction, and another one settles. */
  readonly otherTransaction?: true;
  /** The payer cancels the nonce, or spends it elsewhere. */
  readonly burns?: true;
  readonly reorganization?: true;
  /** What we submitted may be mined without settling, its nonce unused; in some worlds no stranger settles it then. */
  readonly reverts?: true | "for good";
  readonly bodyStopsFitting?: true;
  /** The journal is restored without a row, which takes longer than its payment's window stays open. */
  readonly restored?: true;
  /** Payments settle in batches through our own relayer, instead of through a facilitator that does anything. */
  readonly relay?: Relaying;
  /** How many payments the payer can afford, and how many of them may be in flight. */
  readonly purse?: Purse;
  readonly apiProcesses?: number;
  readonly resolver?: "sleeps";
  /**
   * A run may be held up before every command. Otherwise a lookup and its first statement are one step, and what concerns the
   * run alone (a handler, a simulation that cannot refuse) follows at once.
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
 * What the chain shows of an authorization. There is no mempool: a signature that left may be broadcast, dropped and
 * broadcast again as long as its window lasts.
 */
export type OnChain = "unused" | "paid" | "paid, final" | "spent" | "spent, final";

export interface Authorization {
  readonly onChain: OnChain;
  /** Which of the possible settlements it is; 0 for none. */
  readonly place: number;
  /** It settled before its signature left us: broadcast by its payer, or by someone else who had it. */
  readonly withoutUs: boolean;
  /** Its signature has left us. */
  readonly left: boolean;
  /** Our own transaction for it was mined without settling; a reorganization may have removed it again. */
  readonly failed: "no" | "mined" | "removed";
  /** Its payer was told to pay again. */
  readonly told: boolean;
  /** Its work is recorded. */
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
  /** The order in which a payer's payments came to be in flight, where that matters. */
  readonly entered: number;
  readonly place: number;
  readonly final: boolean;
  readonly revived: boolean;
  readonly response: StoredAnswer | null;
}

/** 0: the window is open · 1: less than its margin is left · 2: the head has passed it · 3: a final block has. */
export type Clock = 0 | 1 | 2 | 3;

/** Everything but the processes. */
export interface Surroundings {
  readonly clock: Clock;
  readonly reorganized: boolean;
  readonly bodyFits: boolean;
  readonly purse: Purse | null;
  readonly authorizations: readonly Authorization[];
  readonly rows: readonly (JournalRow | null)[];
  readonly relay: Relay | null;
  /** Where a look that is still under way saw payments; without it null. */
  readonly older: readonly Authorization[] | null;
}

/** Something that happens beside the gate. */
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
    /** What it submits waits for a batch. */
    | { readonly type: "wait" };
  /** The row's lease token is this run's. */
  readonly holds: boolean;
  /** The payment was dead already when this run took its row. */
  readonly tookDead: boolean;
  /** It has stored the settlement, or taken a row that has it. */
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
  // One slot more than authorizations: with a key that is not the authorization, one may have two rows.
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

/** What the handler makes of a request, told apart by `location`. */
export const resultOf = (asks: string): StoredAnswer => ({ status: 200, body: new Uint8Array(), location: asks });

/** The row as the gate reads it. */
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

/** It can never settle any more. */
export const isDead = ({ clock }: Surroundings, { onChain }: Authorization): boolean =>
  onChain === "spent, final" || (onChain === "unused" && clock === 3);

export function canSettle({ clock, reorganized }: Surroundings, one: Authorization, world: World): boolean {
  const movable = world.reorganization === true && !reorganized;
  if (isPaid(one)) return true;
  if (one.onChain === "unused") return clock < 2 || (clock === 2 && movable && one.left);
  return one.onChain === "spent" && clock < 2 && movable;
}
