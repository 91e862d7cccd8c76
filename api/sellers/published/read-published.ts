import { drawBadge, type SharedAddresses, type SharedRecord } from "../../certificates/index.ts";
import { CERTIFICATE_ENTRIES, type PublicLog } from "../../log/index.ts";
import { Problem } from "../../platform/http/errors.ts";
import type { Signer } from "../../platform/signing/document.ts";
import type { Address } from "../../platform/wallet.ts";
import { parseOrigin } from "../../platform/web/target.ts";
import { asPrefix, pathFault } from "../consent.ts";
import type { ExamStore } from "../exam-store.ts";
import { type Exam, isExamId, type PublishedExam, published, type Site, siteOf } from "../record.ts";
import { examAppearance, sellerPreview } from "./appearance.ts";
import { type Placed, SELLER_BADGE, sellerRecord } from "./document.ts";
import { exchangesOf, namedTransactions } from "./evidence.ts";
import { earlierOf, judgeExams, verdictOf } from "./judge-exams.ts";
import { SELLER_CREDENTIAL, SELLER_RECORD, SELLER_VERIFICATION } from "./schemas.ts";
import { renderSellerPage } from "./seller-page.ts";
import type { createCorrections, createPublishedExamReader } from "./store.ts";
import { payeeExams, sellerCredential, sellerVerification, siteQuery } from "./verification.ts";
import { renderSellerVerification } from "./verification-page.ts";

export interface PublishedParts {
  readonly store: Pick<ExamStore, "get" | "evidence">;
  readonly reader: ReturnType<typeof createPublishedExamReader>;
  readonly signer: Signer;
  /** No trailing slash. */
  readonly baseUrl: string;
  readonly now: () => Date;
}

export function createPublished({ store, reader, signer, baseUrl, now }: PublishedParts) {
  const verification = async (site: Site, at: Date) =>
    sellerVerification({ site, exams: await reader.ofSite(site, at) }, baseUrl, at);
  return {
    /** Returns an exam, placed among its origin's other exams if it is published. */
    async exam(id: string): Promise<{ readonly exam: Exam; readonly placed: Placed | null } | null> {
      const exam = isExamId(id) ? await store.get(id) : null;
      if (exam === null) return null;
      const ended = published(exam);
      if (ended === null) return { exam, placed: null };
      const at = now();
      return { exam, placed: placed(ended, await reader.ofSite(siteOf(exam.order), at), at) };
    },
    /** Returns the kept exchanges as JSON, exactly as hashed, or null while there are none. */
    evidence: (id: string) => (isExamId(id) ? store.evidence(id) : Promise.resolve(null)),
    verification: (site: Site) => verification(site, now()),
    /** Returns the same record, signed for verification elsewhere. */
    async credential(site: Site) {
      const at = now();
      const url = `${baseUrl}/credential?${siteQuery(site)}`;
      return signer.sign(sellerCredential(await verification(site, at), signer.issuer, url), at);
    },
    async payee(wallet: Address) {
      const at = now();
      return payeeExams(wallet, await reader.ofPayee(wallet, at), { baseUrl, now: at });
    },
  };
}

export type Published = ReturnType<typeof createPublished>;

/** An exam too old to be in `exams` has been superseded or has expired. */
function placed(exam: PublishedExam, exams: readonly PublishedExam[], at: Date): Placed {
  const known = exams.some(({ order }) => order.id === exam.order.id) ? exams : [...exams, exam];
  const all = judgeExams(known, at);
  const own = all.find((one) => one.exam.order.id === exam.order.id);
  const newer = all.find(
    ({ exam: one, state }) => (state === "counts" || state === "expired") && earlierOf(one, [exam]).length > 0,
  );
  const failing = all.find((one) => one !== own && one.state === "counts" && verdictOf(one.exam) === "fail");
  return {
    exam,
    state: own?.state ?? "expired",
    supersededBy: own?.state === "superseded" ? (newer?.exam ?? null) : null,
    earlier: earlierOf(exam, known),
    ...(failing === undefined ? {} : { failing: failing.exam }),
  };
}

export type ExamCorrected =
  | { readonly corrected: Exam }
  | { readonly refused: "unknown" | "not_published" }
  | { readonly refused: "corrected"; readonly reason: string };

/**
 * Records, once and publicly, that the examiner was wrong about a published exam, and why. The result is not changed
 * and no longer counts. A seller that disagrees, or has fixed a fault, buys a new exam.
 */
export async function correctExam(
  store: Pick<ExamStore, "get"> & ReturnType<typeof createCorrections>,
  id: string,
  reason: string,
): Promise<ExamCorrected> {
  const exam = await store.get(id);
  if (exam === null) return { refused: "unknown" };
  if (exam.correction !== null) return { refused: "corrected", reason: exam.correction.reason };
  if (published(exam) === null) return { refused: "not_published" };
  if (await store.correct(id, reason)) return { corrected: exam };
  return { refused: "corrected", reason: (await store.get(id))?.correction?.reason ?? "" };
}

export interface SellerAddressParts {
  readonly sellers: Published;
  readonly publicLog: Pick<PublicLog, "places">;
  /** No trailing slash. */
  readonly baseUrl: string;
  readonly now: () => Date;
}

/** Creates the readers of exams at the URLs that they share with certificates. */
export function sellerAddresses(parts: SellerAddressParts): SharedAddresses {
  const { sellers, baseUrl } = parts;
  return {
    schemas: { record: SELLER_RECORD, verification: SELLER_VERIFICATION, credential: SELLER_CREDENTIAL },
    async certificate(id) {
      const found = await sellers.exam(id);
      return found === null ? null : certificate(found, parts);
    },
    async badge(id) {
      const placed = (await sellers.exam(id))?.placed ?? null;
      if (placed === null) return null;
      const { tone, short } = examAppearance(placed);
      return drawBadge({ id, label: SELLER_BADGE, tone, message: short });
    },
    async preview(id) {
      const placed = (await sellers.exam(id))?.placed ?? null;
      return placed === null ? null : sellerPreview(placed);
    },
    async verification(text, prefix) {
      const record = await sellers.verification(siteIn(text, prefix));
      const page = () => renderSellerVerification(record, baseUrl);
      return { document: () => record, page, isListed: record.tested };
    },
    credential: async (text, prefix) => sellers.credential(siteIn(text, prefix)),
  };
}

async function certificate(
  { exam, placed }: { readonly exam: Exam; readonly placed: Placed | null },
  parts: SellerAddressParts,
): Promise<SharedRecord> {
  const { sellers, publicLog, baseUrl } = parts;
  const { id } = exam.order;
  const [text, places] = await Promise.all([
    exam.result === null ? null : sellers.evidence(id),
    publicLog.places.of(id, CERTIFICATE_ENTRIES.types),
  ]);
  const exchanges = exchangesOf(text);
  const shown = { placed, transactions: namedTransactions(exchanges), places, baseUrl };
  const now = parts.now();
  return {
    document: () => sellerRecord(exam, shown, now),
    page: () => renderSellerPage(exam, { ...shown, exchanges, now }),
    isListed: placed !== null,
  };
}

function siteIn(text: string, path: string | undefined): Site {
  const parsed = parseOrigin(text);
  if ("refused" in parsed)
    throw new Problem("malformed_request", { detail: `The query parameter origin ${parsed.refused}.` });
  const wrong = path === undefined ? null : pathFault(path);
  if (wrong !== null) throw new Problem("malformed_request", { detail: `The query parameter path_prefix: ${wrong}.` });
  return { origin: parsed.origin, prefix: asPrefix(path ?? "/") };
}
