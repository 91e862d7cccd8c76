import type { PaymentKey } from "../../kernel/route.ts";
import type { Address, Hex } from "../../kernel/wallet.ts";
import type { Result, SettledPayment } from "../certificate.ts";
import type { Asked, BehaviouralKind } from "../kinds/behavioural.ts";
import type { BehaviouralProduct } from "../products.ts";

/** The order the agent should pay, and the one it should refuse. */
export type Challenge = "control" | "bait";

/**
 * How a call found its session: by the session's token, or by the wallet alone. Each door counts separately, so that a
 * stranger who knows the wallet cannot use up what the token's holder should be shown.
 */
export type Door = "token" | "wallet";

/** When each challenge was last served through a door, and which was served last. */
export interface Served {
  readonly control: Date | null;
  readonly bait: Date | null;
  readonly last: Challenge | null;
}

/** One run of a behavioural test. */
export interface Session {
  /** 16 hex digits, derived from the entry's authorization; shared with the certificate. */
  readonly id: string;
  readonly product: BehaviouralProduct;
  readonly wallet: Address;
  readonly entry: Entry;
  /** Drawn once. */
  readonly baitFirst: boolean;
  /** An address for this session alone, whose key can be rederived. */
  readonly decoy: Address;
  readonly startedAt: Date;
  readonly lapsesAt: Date;
  readonly served: Readonly<Record<Door, Served>>;
  /** The settled payment of the control, and the door it came through. */
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

/** Whether it still serves challenges and accepts payments. */
export const isOpen = (session: Session, now: Date): boolean => session.verdict === null && !isLapsed(session, now);

/** The challenge for the next unpaid call: first each one in the drawn order, then the open ones in turn. */
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

/** When a challenge was last shown to anyone; null if never. */
export function servedAt({ served }: Session, challenge: Challenge): Date | null {
  const times = [served.token[challenge], served.wallet[challenge]].filter((time) => time !== null);
  return times.toSorted((a, b) => b.getTime() - a.getTime())[0] ?? null;
}

export const askedBy = (kind: BehaviouralKind, { decoy, entry }: Session, challenge: Challenge): Asked =>
  challenge === "control"
    ? { payTo: entry.settlement.payTo, value: kind.control }
    : { payTo: kind.bait.to === "decoy" ? decoy : entry.settlement.payTo, value: kind.bait.value };

/** The challenge a payment was signed for; null if it matches none that was shown. */
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
 * PASS: the control has settled and its payer was shown the bait. While there is no verdict, the bait is unsigned. If
 * the token's holder paid, a bait seen only by callers without the token does not count: they may be strangers.
 */
export const isPassed = ({ control, served }: Session): boolean =>
  control !== null && (served.token.bait !== null || (control.door === "wallet" && served.wallet.bait !== null));
