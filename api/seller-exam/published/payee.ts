import { certUrl } from "../../certification/links.ts";
import type { Address } from "../../kernel/wallet.ts";
import type { WebOrigin } from "../../kernel/web-origin.ts";
import type { EndedExam } from "../record.ts";
import { standings, verdictOf } from "./standing.ts";

/** Which exams are told about a wallet that was paid in them. */
const WHICH =
  "Of each request that pays this wallet, its newest exam, while it is fresh. Anyone's server can ask for money to any address, so a FAIL is told only if the wallet itself signed for the exam. Facts, not points: no score counts them.";

/** What exams say about the wallet that sellers ask to be paid at. @param exams newest first, of any origin */
export const payeeExams = (
  wallet: Address,
  exams: readonly EndedExam[],
  { baseUrl, now }: { readonly baseUrl: string; readonly now: Date },
) => ({
  service: "Agent Payment Trust Service" as const,
  wallet,
  note: WHICH,
  exams: standings(exams, now)
    .filter(({ exam, state }) => state === "counts" && isOf(exam))
    .map(({ exam: { order, result } }) => ({
      id: order.id,
      origin: order.origin as WebOrigin,
      method: order.method,
      url: order.url,
      result: verdictOf({ result }),
      level: result.level,
      control: order.consent?.kind ?? ("file" as const),
      issued: result.endedAt.toISOString(),
      valid_until: (result.validUntil ?? result.endedAt).toISOString(),
      cert_url: certUrl(baseUrl, order),
    })),
  checked_at: now.toISOString(),
});

/** Whether an exam may be told about its payee: nobody speaks ill of a wallet with a server of his own. */
const isOf = ({ order, result }: EndedExam): boolean =>
  verdictOf({ result }) === "pass" || order.consent?.kind === "signature";
