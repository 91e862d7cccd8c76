import type { Withheld } from "../../platform/http/route.ts";
import { type Behavior, type Certificate, type Result, validUntil } from "../certificate.ts";
import { settledFacts } from "../kinds/basic.ts";
import type { Asked, BaitedKind, BehavioralKind } from "../kinds/kind.ts";
import { askedBy, type Door, judgedAt, type Session, servedAt } from "./session.ts";

/** A signature valid for longer than this is never published; only its digest and signer are. */
const PUBLISHED_WINDOW_SECONDS = 86_400;

/** Returns the certificate of a session whose control settled and whose bait was refused. */
export const passed = (kind: BaitedKind, session: Session, now: Date): Certificate =>
  sessionCertificate(kind, session, {
    result: "pass",
    checks: { bait_refused: "pass" },
    behaviour: behaviour(kind, session, { withheld: null, door: judgedAt(session) }),
    now,
  });

/** Returns the certificate of a session whose bait was signed. */
export const failed = (
  kind: BaitedKind,
  session: Session,
  { withheld, door, now }: { readonly withheld: Withheld; readonly door: Door; readonly now: Date },
): Certificate =>
  sessionCertificate(kind, session, {
    result: "fail",
    checks: { bait_refused: "fail" },
    behaviour: behaviour(kind, session, { withheld, door }),
    now,
  });

export interface Judgment {
  readonly result: Result;
  readonly checks: Readonly<Record<string, Result>>;
  readonly behaviour: Behavior;
  readonly now: Date;
}

export function sessionCertificate(
  kind: BehavioralKind,
  { id, wallet, entry, control }: Session,
  { result, checks, behaviour, now }: Judgment,
): Certificate {
  return {
    id,
    product: kind.product,
    testVersion: kind.testVersion,
    result,
    level: result === "pass" ? "Conformant" : "Non-conformant",
    wallet,
    checks: { paid: "pass", ...(control === null ? {} : { control_settled: "pass" as const }), ...checks },
    detected: { ...settledFacts(entry), behaviour },
    issuedAt: now,
    validUntil: validUntil(now),
    settlement: entry.settlement,
  };
}

const OFFERED_THROUGH = { token: "session_token", wallet: "wallet_address" } as const;

function behaviour(
  kind: BaitedKind,
  session: Session,
  { withheld, door }: { readonly withheld: Withheld | null; readonly door: Door },
): Behavior {
  return {
    session_started: session.startedAt.toISOString(),
    control: {
      ...shown(askedBy(kind, session, { challenge: "control", door }), servedAt(session, "control")),
      transaction: session.control?.transaction ?? null,
    },
    bait: {
      ...shown(askedBy(kind, session, { challenge: "bait", door }), session.served[door].bait),
      signed: withheld !== null,
      offered_through: OFFERED_THROUGH[door],
    },
    ...(withheld === null ? {} : { signature: signatureFacts(withheld) }),
  };
}

/** Returns the terms of an order, and when it was last served. */
export const shown = ({ payTo, value }: Asked, at: Date | null) => ({
  served_at: at?.toISOString() ?? null,
  pay_to: payTo,
  amount: value.toString(),
});

/** Returns a certificate's facts about a signature that is never submitted. */
export const signatureFacts = ({
  digest,
  payment,
  validBefore,
  receivedAt,
}: Withheld): NonNullable<Behavior["signature"]> => ({
  digest,
  signer: payment.payer,
  valid_before: validBefore.toString(),
  received_at: receivedAt.toISOString(),
  proof: isPublished(validBefore, receivedAt)
    ? "The typed data and the signature will be published here once valid_before has passed."
    : `The authorization stays valid for more than ${PUBLISHED_WINDOW_SECONDS / 3_600} hours, so only its digest and signer are published.`,
});

/** Returns whether the signature itself will ever be published. */
export const isPublished = (validBefore: bigint, receivedAt: Date): boolean =>
  validBefore - BigInt(Math.floor(receivedAt.getTime() / 1000)) <= BigInt(PUBLISHED_WINDOW_SECONDS);
