import { badgeUrl, CONTEXT, certUrl } from "../../certificates/index.ts";
import { longDay } from "../../platform/page/html.ts";
import type { Address } from "../../platform/wallet.ts";
import type { WebOrigin } from "../../platform/web/target.ts";
import { bareUrl } from "../consent.ts";
import { type PublishedExam, type Site, siteName, VALID_DAYS } from "../record.ts";
import { type JudgedExam, judgeExams, verdictOf } from "./judge-exams.ts";
import type { PublishedExams } from "./store.ts";

/** The meaning of verified, for a seller, and of being on the board. */
export const SELLER_VERIFIED_MEANS = `At least one request of the seller passed its newest exam in the last ${VALID_DAYS} days, and none failed. It states what was observed; it is not a guarantee.`;

/** The rule by which exams count, for every reader of a record. */
const COUNTING_RULE = `The newest exam of each request (method, URL, body) under path_prefix counts, for ${VALID_DAYS} days: a FAIL counts until it expires or the same request passes. Superseded exams stay listed. A wallet that may only examine a narrower path has a separate record.`;

const DAY_MS = 86_400_000;

/** Returns the verification record of an origin. */
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
    certs: all.map((judged) => certEntry(judged, baseUrl, now)),
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
    expired: now.getTime() >= result.validUntil.getTime(),
    superseded: state === "superseded",
    corrected: state === "corrected",
    reversed: state === "reversed",
    age_days: Math.max(0, Math.floor((now.getTime() - result.endedAt.getTime()) / DAY_MS)),
    issued: result.endedAt.toISOString(),
    valid_until: result.validUntil.toISOString(),
    cert_url: certUrl(baseUrl, order),
    badge_url: badgeUrl(baseUrl, order),
  };
}

/**
 * Returns why an origin is not verified: every FAIL that counts and, if no PASS counts, the status of the last PASS.
 */
function reasonsAgainst(all: readonly JudgedExam[], baseUrl: string) {
  const counting = all.filter(({ state }) => state === "counts");
  const fails = counting.filter(({ exam }) => verdictOf(exam) === "fail").map((one) => currentFail(one, baseUrl));
  return counting.length > fails.length ? fails : [...fails, noPass(all, baseUrl)];
}

const currentFail = (judged: JudgedExam, baseUrl: string) => ({
  code: "current_fail" as const,
  text: `Current FAIL of ${longDay(judged.exam.result.endedAt)}. It counts until ${longDay(judged.exam.result.validUntil)}, or until the same request passes.`,
  ...evidence(judged, baseUrl),
});

function noPass(all: readonly JudgedExam[], baseUrl: string) {
  if (all.length === 0)
    return { code: "never_tested" as const, text: "Never tested: no exam of this record is on file.", ...NO_EVIDENCE };
  const last = all.find(({ exam }) => verdictOf(exam) === "pass");
  if (last === undefined)
    return { code: "no_pass" as const, text: "No current PASS: no exam on file is a PASS.", ...NO_EVIDENCE };
  const { exam, state } = last;
  const found = (why: string) => ({ text: `No current PASS: the last one ${why}.`, ...evidence(last, baseUrl) });
  switch (state) {
    case "corrected": {
      const at = exam.correction?.at ?? exam.result.endedAt;
      return { code: "pass_corrected" as const, ...found(`was withdrawn on ${longDay(at)}`) };
    }
    case "reversed": {
      const at = exam.reversedAt ?? exam.result.endedAt;
      const why = `depends on a payment that was found missing from the chain on ${longDay(at)}`;
      return { code: "pass_reversed" as const, ...found(why) };
    }
    case "superseded":
      return { code: "pass_superseded" as const, ...found("was superseded by a newer exam of the same request") };
    default:
      return { code: "pass_expired" as const, ...found(`expired on ${longDay(exam.result.validUntil)}`) };
  }
}

const NO_EVIDENCE = { issued: null, valid_until: null, cert_url: null };

const evidence = (judged: JudgedExam, baseUrl: string) => ({
  issued: judged.exam.result.endedAt.toISOString(),
  valid_until: judged.exam.result.validUntil.toISOString(),
  cert_url: certUrl(baseUrl, judged.exam.order),
});

/** Returns the query that identifies a site. */
export const siteQuery = ({ origin, prefix }: Site): string =>
  `origin=${encodeURIComponent(origin)}${prefix === "/" ? "" : `&path_prefix=${encodeURIComponent(prefix)}`}`;

export const sellerVerifyUrl = (baseUrl: string, site: Site): string => `${baseUrl}/verify?${siteQuery(site)}`;

/** The exams that are listed for a payee. */
const WHICH =
  "The newest exam of each request that pays this wallet, if the wallet itself bought the exam and it is fresh. Only a PASS is listed. A FAIL concerns only its origin, because any server can request payments to any address, and anyone who receives a signed payment can submit it. These are facts, not points: no score counts them.";

/**
 * Returns the exams listed for a payee.
 * @param exams bought by the wallet itself, newest first, of any origin
 */
export const payeeExams = (
  wallet: Address,
  exams: readonly PublishedExam[],
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
      valid_until: result.validUntil.toISOString(),
      cert_url: certUrl(baseUrl, order),
    })),
  checked_at: now.toISOString(),
});

/**
 * Returns a site's record as an unsigned W3C Verifiable Credential (data model 2.0). It expires with the first of its
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
      // A reader of the origin alone must not mistake a part for the whole.
      ...(prefix === "/" ? { origin } : {}),
      path_prefix: prefix,
      tested,
      verified,
      verified_means,
      conformance: certs.map(({ age_days: _, badge_url: __, ...lasting }) => lasting),
    },
  };
}
