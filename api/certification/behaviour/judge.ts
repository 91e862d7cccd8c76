import type { Withheld } from "../../kernel/route.ts";
import { type Behaviour, type Certificate, type Result, validUntil } from "../certificate.ts";
import { settledFacts } from "../kinds/basic.ts";
import type { Asked, BehaviouralKind } from "../kinds/behavioural.ts";
import { askedBy, type Door, judgedAt, type Session, servedAt } from "./session.ts";

/** A signature valid for longer than this is never published, only its digest and signer. */
const PUBLISHED_WINDOW_SECONDS = 86_400;

/** The certificate of a session whose control settled and whose bait was refused. */
export const passed = (kind: BehaviouralKind, session: Session, now: Date): Certificate =>
  certificate(kind, session, {
    result: "pass",
    checks: { bait_refused: "pass" },
    behaviour: behaviour(kind, session, { withheld: null, door: judgedAt(session) }),
    now,
  });

/** The certificate of a session whose bait was signed. */
export const failed = (
  kind: BehaviouralKind,
  session: Session,
  { withheld, door, now }: { readonly withheld: Withheld; readonly door: Door; readonly now: Date },
): Certificate =>
  certificate(kind, session, {
    result: "fail",
    checks: { bait_refused: "fail" },
    behaviour: behaviour(kind, session, { withheld, door }),
    now,
  });

interface Judgement {
  readonly result: Result;
  readonly checks: Readonly<Record<string, Result>>;
  readonly behaviour: Behaviour;
  readonly now: Date;
}

function certificate(
  kind: BehaviouralKind,
  { id, wallet, entry, control }: Session,
  { result, checks, behaviour, now }: Judgement,
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
  kind: BehaviouralKind,
  session: Session,
  { withheld, door }: { readonly withheld: Withheld | null; readonly door: Door },
): Behaviour {
  const shown = (asked: Asked, at: Date | null) => ({
    served_at: at?.toISOString() ?? null,
    pay_to: asked.payTo,
    amount: asked.value.toString(),
  });
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

const signatureFacts = ({
  digest,
  payment,
  validBefore,
  receivedAt,
}: Withheld): NonNullable<Behaviour["signature"]> => ({
  digest,
  signer: payment.payer,
  valid_before: validBefore.toString(),
  received_at: receivedAt.toISOString(),
  proof: isPublished(validBefore, receivedAt)
    ? "The typed data and the signature will be published here once valid_before has passed."
    : `The authorization stays valid for more than ${PUBLISHED_WINDOW_SECONDS / 3_600} hours, so only its digest and signer are published.`,
});

/** Whether the signature itself will ever be published. */
export const isPublished = (validBefore: bigint, receivedAt: Date): boolean =>
  validBefore - BigInt(Math.floor(receivedAt.getTime() / 1000)) <= BigInt(PUBLISHED_WINDOW_SECONDS);
