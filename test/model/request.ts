import { isAbandoned } from "../../api/payments/step.ts";
import type { Answer, Arrival, Row } from "../../api/payments/step-types.ts";
import { views } from "./chain.ts";
import { digestOf, fingerprintOf } from "./journal.ts";
import type { Off, Sent, Surroundings, World } from "./world.ts";

/** Requests as the machine receives them, with the results of the checks for a payment without a row. */

interface Bounded {
  readonly world: World;
  readonly off: Off | null;
}

export const isNew = ({ row, sameId }: Pick<Arrival, "row" | "sameId">): boolean =>
  row === null && (sameId === null || isAbandoned(sameId));

/** The row as it was found, even if it has changed since. */
export const ABANDONED: Row = {
  state: "received",
  reason: null,
  digest: "",
  fingerprint: "",
  paymentId: null,
  leaseLive: false,
  settlement: null,
  final: false,
  revived: false,
  refusal: null,
  response: null,
};

export const NOTHING = { row: null, sameId: null };

export const requested = (
  explored: Bounded,
  now: Surroundings,
  { sent, row, sameId }: Pick<Arrival, "row" | "sameId"> & { readonly sent: Sent },
): Arrival[] => {
  const { off } = explored;
  const checks = isNew({ row, sameId })
    ? freshChecks(explored, now, sent)
    : [row === null && off !== "another-authorization-fits" ? termsAndWindow(now, sent) : "ok"];
  return checks.map((fresh) => ({
    type: "request",
    row,
    sameId,
    digest: digestOf(sent, off),
    fingerprint: fingerprintOf(sent, off),
    paymentId: sent.id,
    signature: sent.by === "forger" ? "invalid" : "valid",
    fresh,
  }));
};

const TOO_LATE: Answer = { type: "pay", error: "the window is too short" };
const UNTOLD: Answer = { type: "wait", charged: false, because: "unavailable" };

function termsAndWindow({ clock }: Surroundings, { otherTerms }: Sent): "ok" | Answer {
  if (otherTerms) return { type: "pay", error: "the terms do not fit" };
  return clock > 0 ? TOO_LATE : "ok";
}

/** Returns the result of the checks that need no chain. */
export function localChecks(now: Surroundings, sent: Sent): "ok" | Answer {
  const unfit = termsAndWindow(now, sent);
  if (unfit !== "ok") return unfit;
  return now.bodyFits ? "ok" : { type: "unacceptable", detail: "the body does not fit" };
}

/**
 * A payment that can no longer be submitted may have paid us, because its row may be lost or its payer may have
 * broadcast it.
 */
function freshChecks({ world, off }: Bounded, now: Surroundings, sent: Sent): Arrival["fresh"][] {
  const local = localChecks(now, sent);
  if (local !== TOO_LATE || !now.bodyFits || sent.by === "forger" || off === "closed-window-is-looked-at")
    return [local];
  const seen = views(now, sent.authorization, { world, off }).map(({ nonce }) => {
    if (nonce === "spent") return UNTOLD;
    return nonce === "paid" ? "paid" : TOO_LATE;
  });
  return world.calm ? seen : [...seen, UNTOLD];
}
