import type { Block, HashedBlock } from "../platform/chain/nodes.ts";
import type { Question } from "./question.ts";
import type { NonceEnd, NonceReading } from "./reading.ts";

/** The position of a time relative to `validAfter` and `validBefore`; `unknown` if these are unknown. */
export type ValidityWindow = "not_yet" | "open" | "closed" | "unknown";

/** The reason that the transaction of a used nonce is missing. */
export type Missing = "unfinished" | "nowhere" | "later";

/** The status of an authorization. A `final` status never changes. */
export type Status =
  /** The chain shows the transfer that was authorized. */
  | (UsedNonce & { readonly status: "settled"; readonly transfer: NonNullable<NonceEnd["transfer"]> })
  /** The nonce was used for another authorization of the same payer, so this one can never settle. */
  | (UsedNonce & { readonly status: "replaced"; readonly transfer: NonNullable<NonceEnd["transfer"]> })
  /** The payer canceled it, so it can never settle. */
  | (UsedNonce & { readonly status: "canceled" })
  /** The nonce was used. Whether for a payment or a cancellation is not known yet. */
  | { readonly status: "used"; readonly final: false; readonly asOf: Block; readonly search: Missing }
  /** The nonce is unused. */
  | { readonly status: "pending"; readonly final: false; readonly asOf: Block; readonly window: ValidityWindow }
  /** A negative proof: this final block is at or after `validBefore`, and the nonce was not used before it. */
  | { readonly status: "expired"; readonly final: true; readonly asOf: Block; readonly finalBlock: HashedBlock };

interface UsedNonce {
  readonly final: boolean;
  readonly asOf: Block;
  readonly end: NonceEnd;
}

/** The state of a nonce, as read from nodes. */
export type Seen =
  | {
      readonly nonce: "unused";
      readonly reading: NonceReading;
      /** A final block at or after `validBefore` before which the nonce was not used, or null. */
      readonly unusedBefore: HashedBlock | null;
    }
  | { readonly nonce: "used"; readonly asOf: Block; readonly end: NonceEnd; readonly isFinal: boolean }
  | { readonly nonce: "used"; readonly asOf: Block; readonly end: null; readonly search: Missing };

/**
 * Implements the table of `docs/settlement.md`. Unknown members of the authorization are assumed to match the chain. A final
 * status depends only on the final chain, and is as of the block that proves it, so it is the same at any time and from any
 * process.
 */
export function decide(question: Question, seen: Seen): Status {
  if (seen.nonce === "unused") return notUsedInTime(question, seen.reading.at, seen.unusedBefore);
  const { asOf, end } = seen;
  if (end === null) return { status: "used", final: false, asOf, search: seen.search };
  const {
    isFinal,
    end: { block, transfer },
  } = seen;
  // The nonce ended after this authorization had expired, so this authorization was not used.
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

/** USDC requires `block.timestamp > validAfter` and `block.timestamp < validBefore`. */
function windowAt({ validAfter, validBefore }: Question, time: bigint): ValidityWindow {
  if (validBefore === null) return "unknown";
  if (time >= validBefore) return "closed";
  return validAfter !== null && time <= validAfter ? "not_yet" : "open";
}

/** A payer may sign two authorizations with one nonce. A transfer that is too early or has another payee or value belongs to the other one. */
const isOf = (
  { to, value, validAfter }: Question,
  { block }: NonceEnd,
  transfer: NonNullable<NonceEnd["transfer"]>,
): boolean =>
  (to === null || to === transfer.to) &&
  (value === null || value === transfer.value) &&
  (validAfter === null || block.time > validAfter);
