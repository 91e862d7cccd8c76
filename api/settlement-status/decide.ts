import type { Block, HashedBlock } from "../platform/chain/nodes.ts";
import type { Question } from "./question.ts";
import type { NonceEnd, NonceReading } from "./reading.ts";

/** Where a question's time stands between `validAfter` and `validBefore`; `unknown` where these are. */
export type ValidityWindow = "not_yet" | "open" | "closed" | "unknown";

/** Why the transaction of a used nonce is not named. */
export type Missing = "unfinished" | "nowhere" | "later";

/** What has become of an authorization. A `final` answer never changes. */
export type Status =
  /** The chain shows the transfer that was authorized. */
  | (UsedNonce & { readonly status: "settled"; readonly transfer: NonNullable<NonceEnd["transfer"]> })
  /** The nonce paid for another authorization of the same payer, so this one can never settle. */
  | (UsedNonce & { readonly status: "replaced"; readonly transfer: NonNullable<NonceEnd["transfer"]> })
  /** The payer canceled it, so it can never settle. */
  | (UsedNonce & { readonly status: "canceled" })
  /** The nonce is over. Whether by a payment or by a cancellation is not known yet. */
  | { readonly status: "used"; readonly final: false; readonly asOf: Block; readonly search: Missing }
  /** Not used. */
  | { readonly status: "pending"; readonly final: false; readonly asOf: Block; readonly window: ValidityWindow }
  /** A negative proof: this final block is not before `validBefore`, and the nonce was not used before it. */
  | { readonly status: "expired"; readonly final: true; readonly asOf: Block; readonly finalBlock: HashedBlock };

interface UsedNonce {
  readonly final: boolean;
  readonly asOf: Block;
  readonly end: NonceEnd;
}

/** What nodes have shown of a nonce. */
export type Seen =
  | {
      readonly nonce: "unused";
      readonly reading: NonceReading;
      /** A final block, not before `validBefore`, before which the nonce was not used; null if none is known. */
      readonly unusedBefore: HashedBlock | null;
    }
  | { readonly nonce: "used"; readonly asOf: Block; readonly end: NonceEnd; readonly isFinal: boolean }
  | { readonly nonce: "used"; readonly asOf: Block; readonly end: null; readonly search: Missing };

/**
 * The table of `docs/settlement.md`. What was authorized and is not known is taken to be what the chain shows. A final
 * answer follows from the final chain alone, and is as of the block that proves it: so it is the same whenever it is asked
 * for, and whoever answers.
 */
export function decide(question: Question, seen: Seen): Status {
  if (seen.nonce === "unused") return notUsedInTime(question, seen.reading.at, seen.unusedBefore);
  const { asOf, end } = seen;
  if (end === null) return { status: "used", final: false, asOf, search: seen.search };
  const {
    isFinal,
    end: { block, transfer },
  } = seen;
  // The nonce came to its end when this authorization was over: it had not been used.
  if (question.validBefore !== null && block.time >= question.validBefore)
    return notUsedInTime(question, asOf, isFinal ? block : null);
  const found = { final: isFinal, asOf: isFinal ? { number: block.number, time: block.time } : asOf, end };
  if (transfer === null) return { ...found, status: "canceled" };
  return { ...found, transfer, status: isOf(question, end, transfer) ? "settled" : "replaced" };
}

function notUsedInTime(question: Question, asOf: Block, unusedBefore: HashedBlock | null): Status {
  if (unusedBefore === null) return { status: "pending", final: false, asOf, window: windowAt(question, asOf.time) };
  const { number, time } = unusedBefore;
  return { status: "expired", final: true, asOf: { number, time }, finalBlock: unusedBefore };
}

/** USDC asks for `block.timestamp > validAfter` and `block.timestamp < validBefore`. */
function windowAt({ validAfter, validBefore }: Question, time: bigint): ValidityWindow {
  if (validBefore === null) return "unknown";
  if (time >= validBefore) return "closed";
  return validAfter !== null && time <= validAfter ? "not_yet" : "open";
}

/** A payer may sign two authorizations with one nonce: a transfer too early, to another payee or of another value was the other one's. */
const isOf = (
  { to, value, validAfter }: Question,
  { block }: NonceEnd,
  transfer: NonNullable<NonceEnd["transfer"]>,
): boolean =>
  (to === null || to === transfer.to) &&
  (value === null || value === transfer.value) &&
  (validAfter === null || block.time > validAfter);
