import type { Answer, Reason, Row, Run } from "./step-types.ts";
import { WINDOW_MARGIN_SECONDS } from "./window.ts";

/** What a client hears that has to come again with the same header. */
export const WAIT = {
  held: { say: "wait", charged: false, because: "held" },
  heldCharged: { say: "wait", charged: true, because: "held" },
  crowded: { say: "wait", charged: false, because: "crowded" },
  "no place": { say: "wait", charged: false, because: "no place" },
  "gas lost": { say: "wait", charged: false, because: "gas lost" },
  unsettled: { say: "wait", charged: false, because: "unsettled" },
  unavailable: { say: "wait", charged: false, because: "unavailable" },
  unavailableCharged: { say: "wait", charged: true, because: "unavailable" },
  failed: { say: "wait", charged: true, because: "failed" },
} as const satisfies Record<string, Answer>;

/** Why a payment is over, as its client hears it. */
export const VOID_ERRORS: Readonly<Record<Reason, string>> = {
  refused: "The token contract refused this authorization; it will not be submitted again. Sign a new one.",
  expired: "This authorization expired before it settled, so it can never settle. Sign a new one.",
  burnt: "This authorization's nonce was canceled or spent elsewhere. Sign a new one.",
  reverted:
    "The transaction with this authorization was mined and reverted, so we never submit it again. Sign a new one. Its signature is public until validBefore: should it settle after all, this same header still gets its result.",
  reversed: "This authorization's settlement was permanently removed from the chain. Sign a new one.",
  bait: "This authorization will never be submitted. Sign a new one.",
};

export const WINDOW_ERROR = `Less than ${WINDOW_MARGIN_SECONDS} seconds remain until validBefore, so this authorization will not be submitted. Sign a new one.`;

/** The chain or the journal did not answer; says that the payment was charged where that is known. */
export const unavailable = ({ row, settlement }: Run): Answer =>
  settlement !== null || row?.state === "settled" ? WAIT.unavailableCharged : WAIT.unavailable;

/** The stored answer of a fulfilled payment. */
export const result = (row: Row, replay: boolean): Answer => {
  if (row.response === null) throw new Error("a fulfilled payment has a stored response");
  return { say: "result", response: row.response, settlement: row.settlement, replay };
};
