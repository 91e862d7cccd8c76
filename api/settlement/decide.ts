import type { Block, HashedBlock, NonceEnd, NonceReading } from "./authorization-reader.ts";
import type { Question } from "./question.ts";

/** Where a question's time stands between `validAfter` and `validBefore`; `unknown` where these are. */
export type ValidityWindow = "not_yet" | "open" | "closed" | "unknown";

/** Why the transaction of a used nonce is not named. */
export type Missing = "unfinished" | "nowhere" | "later";

/** What has become of an authorization. A `final` answer never changes. */
export type Status =
  /** The chain shows the transfer that was authorized. */
  | (Found & { readonly status: "settled"; readonly transfer: NonNullable<NonceEnd["transfer"]> })
  /** The nonce paid for another authorization of the same payer, so this one can never settle. */
  | (Found & { readonly status: "replaced"; readonly transfer: NonNullable<NonceEnd["transfer"]> })
  /** The payer canceled it, so it can never settle. */
  | (Found & { readonly status: "canceled" })
  /** The nonce is over. Whether by a payment or by a cancellation is not known yet. */
  | { readonly status: "used"; readonly final: false; readonly asOf: Block; readonly search: Missing }
  /** Not used. */
  | { readonly status: "pending"; readonly final: false; readonly asOf: Block; readonly window: ValidityWindow }
  /** A negative proof: this final block is not before `validBefore`, and the nonce was not used in it. */
  | { readonly status: "expired"; readonly final: true; readonly asOf: Block; readonly finalBlock: HashedBlock };

interface Found {
  readonly final: boolean;
  readonly asOf: Block;
  readonly end: NonceEnd;
}

/** What nodes have shown of a nonce. */
export type Seen =
  | {
      readonly nonce: "unused";
      readonly reading: NonceReading;
      /** A final block that two separate readings came after, both with the nonce unused; null if there is none. */
      readonly unusedAt: HashedBlock | null;
    }
  | { readonly nonce: "used"; readonly asOf: Block; readonly end: NonceEnd; readonly isFinal: boolean }
  | { readonly nonce: "used"; readonly asOf: Block; readonly end: null; readonly search: Missing };

/** The table of `docs/settlement.md`. What was authorized and is not known is taken to be what the chain shows. */
export function decide(question: Question, seen: Seen): Status {
  if (seen.nonce === "unused") return unused(question, seen);
  const { asOf, end } = seen;
  if (end === null) return { status: "used", final: false, asOf, search: seen.search };
  const found = { final: seen.isFinal, asOf, end };
  const { transfer } = end;
  if (transfer === null) return { ...found, status: "canceled" };
  return { ...found, transfer, status: isOf(question, end, transfer) ? "settled" : "replaced" };
}

function unused(question: Question, { reading, unusedAt }: Extract<Seen, { nonce: "unused" }>): Status {
  const { validBefore } = question;
  const asOf = reading.at;
  if (validBefore !== null && unusedAt !== null && unusedAt.time >= validBefore)
    return { status: "expired", final: true, asOf, finalBlock: unusedAt };
  return { status: "pending", final: false, asOf, window: windowAt(question, asOf.time) };
}

/** USDC asks for `block.timestamp > validAfter` and `block.timestamp < validBefore`. */
function windowAt({ validAfter, validBefore }: Question, time: bigint): ValidityWindow {
  if (validBefore === null) return "unknown";
  if (time >= validBefore) return "closed";
  return validAfter !== null && time <= validAfter ? "not_yet" : "open";
}

/**
 * A payer may sign two authorizations with one nonce. A transfer outside the window, to another payee or of another value
 * was the other one's: so what has once expired never settles.
 */
const isOf = (
  { to, value, validAfter, validBefore }: Question,
  { block }: NonceEnd,
  transfer: NonNullable<NonceEnd["transfer"]>,
): boolean =>
  (to === null || to === transfer.to) &&
  (value === null || value === transfer.value) &&
  (validAfter === null || block.time > validAfter) &&
  (validBefore === null || block.time < validBefore);
