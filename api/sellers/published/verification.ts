import { badgeUrl, CONTEXT, certUrl } from "../../certificates/index.ts";
import { longDay } from "../../platform/page/html.ts";
import type { Address } from "../../platform/wallet.ts";
import type { WebOrigin } from "../../platform/web/target.ts";
import { bareUrl } from "../consent.ts";
import { type EndedExam, type Site, siteName, VALID_DAYS } from "../record.ts";
import { type JudgedExam, judgeExams, verdictOf } from "./standing.ts";
import type { PublishedExams } from "./store.ts";

/** What it means for a seller to be verified, and to be on the board. */
export const SELLER_VERIFIED_MEANS = `At least one request of the seller passed its newest exam in the last ${VALID_DAYS} days, and none failed. It states what was observed; it is not a guarantee.`;

/** Which exams count, for everyone who reads a record. */
const COUNTING_RULE = `Of each request (method, URL, body) under path_prefix the newest exam counts, for ${VALID_DAYS} days: a FAIL counts until it expires or the same request passes. Exams that are superseded stay listed. A wallet that may examine a narrower path has a record of its own.`;

const DAY_MS = 86_400_000;

/** The verification record of an origin. */
export function sellerVerification({ site, exams }: PublishedExams, baseUrl: string, now: Date) {
  const all = judgeExams(exams, now);
  const reasons = reasonsAgainst(all, baseUrl);
  return {
    service: "Agent Payment Trust Service" as const,
    origin: site.origin,
    path_prefix: site.prefix,
    tested: exams.length > 0,
    verified: reasons.length === 0,
    verified_means: SELLER_VERIFIED_MEANS,
    counting_rule: COUNTING_RULE,
    reasons,
    certs: all.map((standing) => certEntry(standing, baseUrl, now)),
    freshness_policy: {
      valid_for_days: VALID_DAYS,
      note: `A certificate is a permanent record. It stays fresh for ${VALID_DAYS} days after the exam; then it expires and the seller should be examined again.`,
    },
    how_to_test: `${baseUrl}/inspect`,
    checked_at: now.toISOString(),
  };
}

export type SellerVerification = ReturnType<typeof sellerVerification>;

function certEntry({ exam, state }: JudgedExam, baseUrl: string, now: Date) {
  const { order, result } = exam;
  return {
    id: order.id,
    product: "seller" as const,
    result: verdictOf(exam),
    level: result.level,
    method: order.method,
    url: bareUrl(order.url).url,
    pay_to: order.payTo,
    fresh: state === "counts",
    expired: result.validUntil === null || now.getTime() >= result.validUntil.getTime(),
    superseded: state === "superseded",
    corrected: state === "corrected",
    reversed: state === "reversed",
    age_days: Math.max(0, Math.floor((now.getTime() - result.endedAt.getTime()) / DAY_MS)),
    issued: result.endedAt.toISOString(),
    valid_until: (result.validUntil ?? result.endedAt).toISOString(),
    cert_url: certUrl(baseUrl, order),
    badge_url: badgeUrl(baseUrl, order),
  };
}

/** Why an origin is not verified: every FAIL that counts, and, without a PASS that does, what became of the last one. */
function reasonsAgainst(all: readonly JudgedExam[], baseUrl: string) {
  const counting = all.filter(({ state }) => state === "counts");
  const fails = counting.filter(({ exam }) => verdictOf(exam) === "fail").map((one) => currentFail(one, baseUrl));
  return counting.length > fails.length ? fails : [...fails, noPass(all, baseUrl)];
}

const currentFail = (standing: JudgedExam, baseUrl: string) => ({
  code: "current_fail" as const,
  text: `Current FAIL of ${longDay(standing.exam.result.endedAt)}. It counts until ${longDay(validUntil(standing))}, or until the same request passes.`,
  ...evidence(standing, baseUrl),
});

function noPass(all: readonly JudgedExam[], baseUrl: string) {
  if (all.length === 0)
    return { code: "never_tested" as const, text: "Never tested: no exam of this record is on file.", ...NO_EVIDENCE };
  const last = all.find(({ exam }) => verdictOf(exam) === "pass");
  if (last === undefined)
    return { code: "no_pass" as const, text: "No current PASS: no exam on file is a PASS.", ...NO_EVIDENCE };
  const found = { text: `No current PASS: the last one ${becameOf(last)}.`, ...evidence(last, baseUrl) };
  switch (last.state) {
    case "corrected":
      return { code: "pass_corrected" as const, ...found };
    case "reversed":
      return { code: "pass_reversed" as const, ...found };
    case "superseded":
      return { code: "pass_superseded" as const, ...found };
    default:
      return { code: "pass_expired" as const, ...found };
  }
}

function becameOf({ exam, state }: JudgedExam): string {
  if (state === "corrected") return `was withdrawn on ${longDay(exam.correction?.at ?? exam.result.endedAt)}`;
  if (state === "reversed")
    return `rests on a payment that was found missing from the chain on ${longDay(exam.reversedAt ?? exam.result.endedAt)}`;
  if (state === "superseded") return "was superseded by a newer exam of the same request";
  return `expired on ${longDay(exam.result.validUntil ?? exam.result.endedAt)}`;
}

const validUntil = ({ exam }: JudgedExam): Date => exam.result.validUntil ?? exam.result.endedAt;

const NO_EVIDENCE = { issued: null, valid_until: null, cert_url: null };

const evidence = (standing: JudgedExam, baseUrl: string) => ({
  issued: standing.exam.result.endedAt.toISOString(),
  valid_until: validUntil(standing).toISOString(),
  cert_url: certUrl(baseUrl, standing.exam.order),
});

/** What names a site in a query. */
export const siteQuery = ({ origin, prefix }: Site): string =>
  `origin=${encodeURIComponent(origin)}${prefix === "/" ? "" : `&path_prefix=${encodeURIComponent(prefix)}`}`;

export const sellerVerifyUrl = (baseUrl: string, site: Site): string => `${baseUrl}/verify?${siteQuery(site)}`;

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
  exams: judgeExams(exams, now)
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

/**
 * A site's record as an unsigned W3C Verifiable Credential (data model 2.0). It expires with the first of its
 * certificates that count.
 * @param issuer the service's did:web identifier
 * @param url where to find the origin's newest credential
 */
export function sellerCredential(record: SellerVerification, issuer: string, url: string) {
  const { origin, path_prefix: prefix, tested, verified, verified_means, certs, checked_at } = record;
  const ends = certs.flatMap(({ fresh, valid_until }) => (fresh ? [valid_until] : [])).sort();
  return {
    "@context": CONTEXT,
    id: url,
    type: ["VerifiableCredential", "SellerCredential"],
    issuer,
    validFrom: checked_at,
    ...(ends[0] === undefined ? {} : { validUntil: ends[0] }),
    credentialSubject: {
      id: siteName({ origin, prefix }),
      // Whoever reads the origin alone must not take a part for the whole.
      ...(prefix === "/" ? { origin } : {}),
      path_prefix: prefix,
      tested,
      verified,
      verified_means,
      conformance: certs.map(({ age_days: _, badge_url: __, ...lasting }) => lasting),
    },
  };
}
