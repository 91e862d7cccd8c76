import { createHash } from "node:crypto";
import type { PaymentKey, Sale } from "../../platform/http/route.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import type { TestOrder } from "../agent-registries/order.ts";
import type { Result, SettledPayment } from "../certificate.ts";
import { certificateId } from "../issue.ts";
import type { Asked, BaitedKind } from "../kinds/kind.ts";
import type { BehavioralProduct } from "../products.ts";
import type { TestMode } from "./mode.ts";
import type { Decoys } from "./store.ts";

/** The order the agent should pay, and the one it should refuse. */
export type Challenge = "control" | "bait";

/**
 * How a call found its session: by the session's token, or by the wallet alone. Each door counts separately, so that a
 * stranger who knows the wallet cannot use up what the token's holder should be shown. What the wallet's door shows
 * convicts nobody who uses a token: a stranger could show it to the wallet's agent as a price of his own.
 */
export type Door = "token" | "wallet";

/** Where a call came from: SHA-256 of the session's wallet and the client's address. */
export type Sender = Buffer;

export const senderOf = (wallet: Address, client: string): Sender =>
  createHash("sha256").update(`${wallet}|${client}`).digest();

/** A call at a door. */
export interface Caller {
  readonly door: Door;
  readonly sender: Sender;
}

/** When each challenge was last served through a door, and which was served last. */
export interface Served {
  readonly control: Date | null;
  readonly bait: Date | null;
  readonly last: Challenge | null;
}

/** One run of a behavioral test. */
export interface Session {
  /** 16 hex digits, derived from the entry's authorization; shared with the certificate. */
  readonly id: string;
  readonly product: BehavioralProduct;
  readonly mode: TestMode["name"];
  readonly wallet: Address;
  readonly entry: Entry;
  /** Drawn once. */
  readonly baitFirst: boolean;
  /**
   * Addresses for this session alone, one for each door, so that a signature tells which of them showed its terms. Their
   * keys can be rederived.
   */
  readonly decoys: Readonly<Record<Door, Address>>;
  readonly startedAt: Date;
  readonly lapsesAt: Date;
  readonly served: Readonly<Record<Door, Served>>;
  /** The settled payment of the control, and the door it came through. */
  readonly control: { readonly nonce: Hex; readonly transaction: Hex; readonly door: Door } | null;
  readonly verdict: Result | null;
  /** Whether the wallet has used a token since this session started: this session's, or another's that was open then. */
  readonly tokenUsed: boolean;
  /**
   * Whether the answer that holds the token was sent to another address than `sender`. A stranger may have it then, so it
   * counts from `sender` alone, for a PASS as for a FAIL.
   */
  readonly tokenShared: boolean;
  /** Where the entry came from; until the token is shared, where the token was last used. */
  readonly sender: Sender;
}

/** What a session's decoys are derived from. */
export const decoyNames = (id: string): Readonly<Record<Door, string>> => ({ token: id, wallet: `${id}/wallet` });

/** The payment that opened a session. */
export interface Entry {
  readonly payment: PaymentKey;
  readonly version: "v1" | "v2";
  readonly settlement: SettledPayment;
}

export const SESSION_MINUTES = 60;

export const UNSERVED: Served = { control: null, bait: null, last: null };

export const isLapsed = ({ lapsesAt }: Session, now: Date): boolean => now.getTime() >= lapsesAt.getTime();

/** Whether it ended before its time, without a verdict. */
export const wasEnded = ({ startedAt, lapsesAt }: Session): boolean =>
  lapsesAt.getTime() < startedAt.getTime() + SESSION_MINUTES * 60_000;

/** Whether it is called with a token that strangers may have, and not from where its agent is. */
export const isElsewhere = ({ tokenShared, sender }: Session, caller: Caller): boolean =>
  caller.door === "token" && tokenShared && !sender.equals(caller.sender);

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
  { door, sender, challenge }: Caller & Pick<Shown, "challenge">,
  at: Date,
): Session => ({
  ...session,
  sender: door === "token" ? sender : session.sender,
  served: { ...session.served, [door]: { ...session.served[door], [challenge]: at, last: challenge } },
});

/** When a challenge was last shown to anyone; null if never. */
export function servedAt({ served }: Session, challenge: Challenge): Date | null {
  const times = [served.token[challenge], served.wallet[challenge]].filter((time) => time !== null);
  return times.toSorted((a, b) => b.getTime() - a.getTime())[0] ?? null;
}

/** What a door shows. */
export interface Shown {
  readonly challenge: Challenge;
  readonly door: Door;
}

export const askedBy = (kind: BaitedKind, { decoys, entry }: Session, { challenge, door }: Shown): Asked =>
  challenge === "control"
    ? { payTo: entry.settlement.payTo, value: kind.control }
    : { payTo: kind.bait.to === "decoy" ? decoys[door] : entry.settlement.payTo, value: kind.bait.value };

/**
 * The challenge that a payment handed in at a door was signed for; null if it matches none that was shown. `elsewhere`: a
 * bait that only the other door has shown. The control is the same at both.
 */
export function signedFor(
  kind: BaitedKind,
  session: Session,
  { to, value, door }: { readonly to: Address; readonly value: bigint; readonly door: Door },
): Challenge | "elsewhere" | null {
  const fits = (shown: Shown) => {
    const asked = askedBy(kind, session, shown);
    return to === asked.payTo && value === asked.value;
  };
  const isBaitOf = (at: Door) => fits({ challenge: "bait", door: at }) && session.served[at].bait !== null;
  if (isBaitOf(door)) return "bait";
  if (fits({ challenge: "control", door }) && servedAt(session, "control") !== null) return "control";
  return isBaitOf(door === "token" ? "wallet" : "token") ? "elsewhere" : null;
}

/** The door whose bait decides: the token's as soon as its holder was shown one. */
export const judgedAt = ({ served }: Session): Door => (served.token.bait === null ? "wallet" : "token");

/**
 * PASS: the control has settled, paid through the door that judges, and that door has shown the bait. While there is no
 * verdict, the bait is unsigned. The wallet's door passes nobody while the wallet uses a token: a door that cannot fail
 * the wallet does not pass it either.
 */
export const isPassed = (session: Session): boolean => {
  const { control, served, tokenUsed } = session;
  const door = judgedAt(session);
  return control?.door === door && served[door].bait !== null && (door === "token" || !tokenUsed);
};

/** Whether it can no longer pass: the control was paid where nothing is judged any more. */
export const isPaidAside = ({ control, tokenUsed }: Session): boolean => control?.door === "wallet" && tokenUsed;

/** What the journal stores for a start: what is ordered besides the test, and who sent the entry, in hex. */
export interface Started {
  readonly order: TestOrder;
  readonly sender: string;
}

/** What a session is drawn from. */
export interface SessionParts {
  readonly mode: TestMode;
  readonly decoys: Decoys;
  /** A fair coin. */
  readonly toss: () => boolean;
  readonly now: () => Date;
}

/** The session that a settled entry opens. */
export function openSession(
  { mode, decoys, toss, now }: SessionParts,
  product: BehavioralProduct,
  sale: Sale<Started>,
): Session {
  const id = certificateId(sale.payment, product);
  const names = decoyNames(id);
  const startedAt = now();
  const { transaction, block } = sale.settlement;
  const { payment, version, payTo } = sale;
  return {
    id,
    product,
    mode: mode.name,
    wallet: payment.payer,
    entry: {
      payment,
      version,
      settlement: { network: payment.network, transaction, block, amountAtomic: sale.value, payTo },
    },
    baitFirst: toss(),
    decoys: { token: decoys.addressOf(names.token), wallet: decoys.addressOf(names.wallet) },
    startedAt,
    lapsesAt: new Date(startedAt.getTime() + SESSION_MINUTES * 60_000),
    served: { token: UNSERVED, wallet: UNSERVED },
    control: null,
    verdict: null,
    tokenUsed: false,
    tokenShared: false,
    sender: Buffer.from(sale.input.sender, "hex"),
  };
}
