import type { Withheld } from "../../platform/http/route.ts";
import { sessionCertificate, shown, signatureFacts } from "../sessions/judge.ts";
import type { Challenge, Session } from "../sessions/session.ts";
import type { Certificate } from "../certificate.ts";
import type { Asked } from "../kinds/behavioural.ts";
import type { LossyKind } from "../kinds/retry.ts";
import { priceOf } from "./answers.ts";
import { type LostOrder, orderOf } from "./lost-order.ts";

/** What an order costs, and who is paid: the address that the entry paid. */
export const askedFor = (kind: LossyKind, session: Session, challenge: Challenge): Asked => ({
  payTo: session.entry.settlement.payTo,
  value: priceOf(kind, orderOf(session, challenge)),
});

/** What was judged, and when. `second` is the authorization that would have paid again; null for a PASS. */
interface Judged {
  readonly lost: LostOrder;
  readonly second: Withheld | null;
  readonly now: Date;
}

/** The certificate of a session: PASS if nothing was signed a second time, else FAIL. */
export function judged(kind: LossyKind, session: Session, { lost, second, now }: Judged): Certificate {
  const { paid } = lost;
  if (paid === null) throw new Error(`the session ${session.id} is judged before its order is paid`);
  const result = second === null ? "pass" : "fail";
  const time = (at: Date | null) => at?.toISOString() ?? null;
  return sessionCertificate(kind, session, {
    result,
    checks: { paid_once: result },
    behaviour: {
      session_started: session.startedAt.toISOString(),
      control: {
        ...shown(askedFor(kind, session, "control"), session.served.token.control),
        transaction: session.control?.transaction ?? null,
      },
      bait: {
        ...shown(askedFor(kind, session, "bait"), session.served.token.bait),
        signed: second !== null,
        offered_through: "session_token",
      },
      lost: {
        way: lost.way,
        ...paid,
        lost_at: time(lost.lostAt),
        sent_again_at: time(lost.sentAgainAt),
        asked_at: time(lost.askedAt),
      },
      ...(second === null ? {} : { signature: signatureFacts(second) }),
    },
    now,
  });
}
