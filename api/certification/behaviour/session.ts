import type { PaymentKey } from "../../kernel/route.ts";
import type { Address, Hex } from "../../kernel/wallet.ts";
import type { Result, SettledPayment } from "../certificate.ts";
import type { Asked, BehaviouralKind } from "../kinds/behavioural.ts";
import type { BehaviouralProduct } from "../products.ts";

/** The order that should be paid, and the one that should be refused. */
export type Challenge = "control" | "bait";

/**
 * How a call found its session: by the session's token, or by the wallet alone. The doors count apart, so that a stranger who knows
 * the wallet cannot use up what the holder of the token is to be shown.
 */
export type Door = "token" | "wallet";

/** When each challenge was last served through a door, and which one was served last. */
export interface Served {
  readonly control: Date | null;
  readonly bait: Date | null;
  readonly last: Challenge | null;
}

/** One run of a behavioural test. */
export interface Session {
  /** 16 hex digits, derived from the entry's authorization; the certificate will have the same. */
  readonly id: string;
  readonly product: BehaviouralProduct;
  readonly wallet: Address;
  readonly entry: Entry;
  /** Drawn once. */
  readonly baitFirst: boolean;
  /** An address of this session alone, whose key can be derived again. */
  readonly decoy: Address;
  readonly startedAt: Date;
  readonly lapsesAt: Date;
  readonly served: Readonly<Record<Door, Served>>;
  /** The settled payment of the control, and the door that it came through. */
  readonly control: { readonly nonce: Hex; readonly transaction: Hex; readonly door: Door } | null;
  readonly verdict: Result | null;
}

/** The payment that opened a session. */
export interface Entry {
  readonly payment: PaymentKey;
  readonly version: "v1" | "v2";
  readonly settlement: SettledPayment;
}

export const SESSION_MINUTES = 60;

export const UNSERVED: Served = { control: null, bait: null, last: null };

export const isLapsed = ({ lapsesAt }: Session, now: Date): boolean => now.getTime() >= lapsesAt.getTime();

/** Whether it still serves and takes payments. */
export const isOpen = (session: Session, now: Date): boolean => session.verdict === null && !isLapsed(session, now);

/** The challenge of the next unpaid call: first each in the order that was drawn, then the open ones in turn. */
export function nextChallenge({ served, baitFirst, control }: Session, door: Door): Challenge {
  const order: readonly Challenge[] = baitFirst ? ["bait", "control"] : ["control", "bait"];
  const open = order.filter((challenge) => challenge === "bait" || control === null);
  const seen = served[door];
  return (
    open.find((challenge) => seen[challenge] === null) ?? open.find((challenge) => seen.last !== challenge) ?? "bait"
  );
}

export const asServed = (
  session: Session,
  { door, challenge }: { readonly door: Door; readonly challenge: Challenge },
  at: Date,
): Session => ({
  ...session,
  served: { ...session.served, [door]: { ...session.served[door], [challenge]: at, last: challenge } },
});

/** When a challenge was last shown to anyone; null when never. */
export function servedAt({ served }: Session, challenge: Challenge): Date | null {
  const times = [served.token[challenge], served.wallet[challenge]].filter((time) => time !== null);
  return times.toSorted((a, b) => b.getTime() - a.getTime())[0] ?? null;
}

export const askedBy = (kind: BehaviouralKind, { decoy, entry }: Session, challenge: Challenge): Asked =>
  challenge === "control"
    ? { payTo: entry.settlement.payTo, value: kind.control }
    : { payTo: kind.bait.to === "decoy" ? decoy : entry.settlement.payTo, value: kind.bait.value };

/** The challenge that a payment was signed for; null when it was for none that has been shown. */
export function signedFor(
  kind: BehaviouralKind,
  session: Session,
  signed: { readonly to: Address; readonly value: bigint },
): Challenge | null {
  const fits = (challenge: Challenge) => {
    const { payTo, value } = askedBy(kind, session, challenge);
    return signed.to === payTo && signed.value === value && servedAt(session, challenge) !== null;
  };
  return (["bait", "control"] as const).find(fits) ?? null;
}

/**
 * PASS: the control has settled, and who paid it was shown the bait, which is unsigned as long as there is no verdict. What the
 * token's holder pays for does not count with a bait that only a caller without the token has seen: he may be a stranger.
 */
export const isPassed = ({ control, served }: Session): boolean =>
  control !== null && (served.token.bait !== null || (control.door === "wallet" && served.wallet.bait !== null));
