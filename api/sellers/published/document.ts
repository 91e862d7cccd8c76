import { CHECK_WEIGHTS } from "../../../packages/seller-check/src/exam/level.ts";
import { remedyOf } from "../../../packages/seller-check/src/exam/remedies.ts";
import { CHECK_TITLES } from "../../../packages/seller-check/src/exam/vocabulary.ts";
import { badgeUrl, certUrl, evidenceUrl } from "../../certificates/index.ts";
import { type LogPlace, placeDocument } from "../../log/index.ts";
import { formatUsd } from "../../platform/money.ts";
import { explorerTransactionUrl } from "../../platform/networks.ts";
import type { Hex } from "../../platform/wallet.ts";
import { consentDocument, requestDocument } from "../consent.ts";
import { type Exam, type ExamOrder, type PublishedExam, siteOf } from "../record.ts";
import { compareSettlements, type NamedTransaction } from "./evidence.ts";
import { type ExamState, verdictOf } from "./judge-exams.ts";
import { sellerVerifyUrl } from "./verification.ts";

/** A published exam, placed among its origin's other exams. */
export interface Placed {
  readonly exam: PublishedExam;
  readonly state: ExamState;
  /** The newer exam that counts in its place, or null. */
  readonly supersededBy: PublishedExam | null;
  /** Earlier published exams of the same request, newest first. */
  readonly earlier: readonly PublishedExam[];
  /** A FAIL of another request, because of which the origin is not verified. Absent if none counts. */
  readonly failing?: PublishedExam;
}

export interface SellerRecordParts {
  /** Null for an exam that is not published. */
  readonly placed: Placed | null;
  readonly transactions: readonly NamedTransaction[];
  readonly places: readonly LogPlace[];
  /** No trailing slash. */
  readonly baseUrl: string;
}

export const SELLER_BADGE = "x402 seller";

/** Returns Markdown for a README: the badge, linked to the certificate. */
export const sellerBadgeMarkdown = (baseUrl: string, order: Pick<ExamOrder, "id">): string =>
  `[![${SELLER_BADGE}](${badgeUrl(baseUrl, order)})](${certUrl(baseUrl, order)})`;

/** Returns the public record of an exam at `/cert/<id>`. It certifies nothing unless `published` is true. */
export function sellerRecord(exam: Exam, parts: SellerRecordParts, now: Date) {
  const { order, correction } = exam;
  const { transactions, places, baseUrl } = parts;
  return {
    ...examined(order),
    ...found(exam, baseUrl),
    ...counted(parts.placed, baseUrl, now),
    correction: corrected(correction, baseUrl),
    again_of: order.againOf === null ? null : certUrl(baseUrl, { id: order.againOf }),
    reversed_at: exam.reversedAt?.toISOString() ?? null,
    ...settled(exam, transactions),
    cert_url: certUrl(baseUrl, order),
    ...(places.length === 0 ? {} : { log: places.map((place) => placeDocument(place, baseUrl)) }),
    checked_at: now.toISOString(),
  };
}

/** Returns the members that describe the order. */
const examined = (order: ExamOrder) => ({
  id: order.id,
  product: "seller" as const,
  origin: order.origin,
  path_prefix: order.consent.prefix,
  request: requestDocument(order),
  pay_to: order.payTo,
  amount: order.amount.toString(),
  amount_usd: formatUsd(order.amount),
  network: order.payment.network,
  control: consentDocument(order.consent),
  bought_by: order.payment.payer,
  bought_with: {
    transaction: order.settlement.transaction,
    explorer_url: explorerTransactionUrl(order.payment.network, order.settlement.transaction),
  },
  ordered_at: order.orderedAt.toISOString(),
});

/** Returns the members that describe the result. They are empty while the exam is under way. */
const found = ({ order, result, removal }: Exam, baseUrl: string) => ({
  status: result?.outcome ?? ("incomplete" as const),
  note: result?.note ?? null,
  checks: (result?.checks ?? []).map(({ check, outcome, reason, findings }) => ({
    check,
    title: CHECK_TITLES[check],
    weight: CHECK_WEIGHTS[check],
    outcome,
    reason,
    findings: findings.map((finding) => ({
      statement: finding.statement,
      holds: finding.holds,
      exchanges: [...finding.exchanges],
      remedy: remedyOf(finding),
    })),
  })),
  spent: result?.spent?.toString() ?? null,
  runs: result?.runs ?? null,
  evidence:
    result === null
      ? null
      : {
          url: evidenceUrl(baseUrl, order),
          sha256: result.evidenceSha256,
          ...(removal && { removed: { reason: removal.reason, at: removal.at.toISOString() } }),
        },
});

function corrected(correction: Exam["correction"], baseUrl: string) {
  if (correction === null) return null;
  const { reason, at, free } = correction;
  const taken = free?.exam ?? null;
  return {
    reason,
    at: at.toISOString(),
    free_exam: free && {
      granted_at: free.grantedAt.toISOString(),
      cert_url: taken === null ? null : certUrl(baseUrl, { id: taken }),
    },
  };
}

/** Returns what the chain showed and, separately, what the seller's answers claim. */
function settled({ order, result }: Exam, named: readonly NamedTransaction[]) {
  const { seen, claimed } = compareSettlements(named, result?.settlements ?? []);
  const explorer_url = (transaction: Hex) => explorerTransactionUrl(order.payment.network, transaction);
  return {
    settlements: seen.map(({ value, claimedIn, ...one }) => ({
      ...one,
      value: value.toString(),
      claimed_in: [...claimedIn],
      explorer_url: explorer_url(one.transaction),
    })),
    claimed_settlements: claimed.map(({ transaction, exchanges, isOnChain }) => ({
      transaction,
      exchanges: [...exchanges],
      on_chain: isOnChain,
      explorer_url: explorer_url(transaction),
    })),
  };
}

/** Whether an exam certifies anything, and whether it still counts. */
interface Counted {
  readonly published: boolean;
  readonly verdict: "pass" | "fail" | null;
  readonly level: "full" | "safe" | null;
  readonly issued_at: string | null;
  readonly valid_until: string | null;
  readonly fresh: boolean;
  readonly expired: boolean;
  readonly superseded_by: string | null;
  readonly earlier: { readonly verdict: "pass" | "fail"; readonly issued_at: string; readonly cert_url: string }[];
  readonly badge_url: string | null;
  readonly badge_markdown: string | null;
  readonly verify_url: string | null;
}

function counted(placed: Placed | null, baseUrl: string, now: Date): Counted {
  if (placed === null) return UNCERTIFIED;
  const { exam, state, supersededBy, earlier } = placed;
  const { order, result } = exam;
  return {
    published: true,
    verdict: verdictOf(exam),
    level: result.level,
    issued_at: result.endedAt.toISOString(),
    valid_until: result.validUntil.toISOString(),
    fresh: state === "counts",
    expired: now.getTime() >= result.validUntil.getTime(),
    superseded_by: supersededBy === null ? null : certUrl(baseUrl, supersededBy.order),
    earlier: earlier.map((one) => ({
      verdict: verdictOf(one),
      issued_at: one.result.endedAt.toISOString(),
      cert_url: certUrl(baseUrl, one.order),
    })),
    badge_url: badgeUrl(baseUrl, order),
    badge_markdown: sellerBadgeMarkdown(baseUrl, order),
    verify_url: sellerVerifyUrl(baseUrl, siteOf(order)),
  };
}

const UNCERTIFIED: Counted = {
  published: false,
  verdict: null,
  level: null,
  issued_at: null,
  valid_until: null,
  fresh: false,
  expired: false,
  superseded_by: null,
  earlier: [],
  badge_url: null,
  badge_markdown: null,
  verify_url: null,
};

/** Returns a published exam as it is entered in the log, with the facts as of its end. */
export const issuedSellerCertificate = ({ order, result }: PublishedExam) => ({
  id: order.id,
  product: "seller",
  origin: order.origin,
  pay_to: order.payTo,
  path_prefix: order.consent.prefix,
  request: requestDocument(order),
  bought_by: order.payment.payer,
  verdict: verdictOf({ result }),
  level: result.level,
  checks: Object.fromEntries(result.checks.map(({ check, outcome }) => [check, outcome])),
  control: "file",
  settlements_on_chain: result.settlements.map(({ transaction, block, from, to, value }) => ({
    transaction,
    block,
    from,
    to,
    value: value.toString(),
  })),
  evidence_sha256: result.evidenceSha256,
  issued_at: result.endedAt.toISOString(),
  valid_until: result.validUntil.toISOString(),
});
