import { certUrl } from "../../certificates/links.ts";
import type { Address } from "../../platform/wallet.ts";
import type { WebOrigin } from "../../platform/web/web-origin.ts";
import type { EndedExam } from "../record.ts";
import { bareUrl } from "../request-document.ts";
import { standings, verdictOf } from "./standing.ts";

/** Which exams are told about a wallet that was paid in them. */
const WHICH =
  "Of each request that pays this wallet and whose exam the wallet itself bought, the newest exam, while it is fresh. Anyone's server can ask for money to any address, and a payment can be handed in by whoever it was given to, so only a PASS is told: a FAIL is about its origin. Facts, not points: no score counts them.";

/** What exams say about the wallet that sellers ask to be paid at. @param exams that it bought itself, newest first, of any origin */
export const payeeExams = (
  wallet: Address,
  exams: readonly EndedExam[],
  { baseUrl, now }: { readonly baseUrl: string; readonly now: Date },
) => ({
  service: "Agent Payment Trust Service" as const,
  wallet,
  note: WHICH,
  exams: standings(exams, now)
    .filter(({ exam, state }) => state === "counts" && verdictOf(exam) === "pass")
    .map(({ exam: { order, result } }) => ({
      id: order.id,
      origin: order.origin as WebOrigin,
      path_prefix: order.consent.prefix,
      method: order.method,
      url: bareUrl(order.url).url,
      result: verdictOf({ result }),
      level: result.level,
      control: "file" as const,
      issued: result.endedAt.toISOString(),
      valid_until: (result.validUntil ?? result.endedAt).toISOString(),
      cert_url: certUrl(baseUrl, order),
    })),
  checked_at: now.toISOString(),
});
