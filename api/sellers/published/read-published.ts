import type { Address } from "../../platform/wallet.ts";
import type { Signed, Signer } from "../../platform/signing/document.ts";
import type { ExamStore } from "../exam-store.ts";
import { type EndedExam, type Exam, isExamId, type Site, siteOf } from "../record.ts";
import { sellerCredential } from "./credential.ts";
import type { Placed } from "./document.ts";
import { payeeExams } from "./payee.ts";
import type { PublishedExamReader } from "./published-exams.ts";
import { earlierOf, standings, verdictOf } from "./standing.ts";
import { type SellerVerification, sellerVerification, siteQuery } from "./verification.ts";

export interface PublishedParts {
  readonly store: Pick<ExamStore, "get" | "evidence">;
  readonly reader: PublishedExamReader;
  readonly signer: Signer;
  /** No trailing slash. */
  readonly baseUrl: string;
  readonly now: () => Date;
}

/** An exam, with its place among the others of its origin if it is published. */
export interface FoundExam {
  readonly exam: Exam;
  readonly placed: Placed | null;
}

export interface Published {
  exam(id: string): Promise<FoundExam | null>;
  /** JSON of the kept exchanges, as it was hashed; null while there is none. */
  evidence(id: string): Promise<string | null>;
  verification(site: Site): Promise<SellerVerification>;
  /** The same, signed for verification elsewhere. */
  credential(site: Site): Promise<Signed<ReturnType<typeof sellerCredential>>>;
  payee(wallet: Address): Promise<ReturnType<typeof payeeExams>>;
}

export function createPublished({ store, reader, signer, baseUrl, now }: PublishedParts): Published {
  const verification = async (site: Site, at: Date) =>
    sellerVerification({ site, exams: await reader.ofSite(site, at) }, baseUrl, at);
  return {
    async exam(id) {
      const exam = isExamId(id) ? await store.get(id) : null;
      if (exam === null) return null;
      const { order, result } = exam;
      if (result === null || !result.isPublic) return { exam, placed: null };
      const at = now();
      return { exam, placed: placed({ ...exam, result }, await reader.ofSite(siteOf(order), at), at) };
    },
    evidence: (id) => (isExamId(id) ? store.evidence(id) : Promise.resolve(null)),
    verification: (site) => verification(site, now()),
    async credential(site) {
      const at = now();
      const url = `${baseUrl}/credential?${siteQuery(site)}`;
      return signer.sign(sellerCredential(await verification(site, at), signer.issuer, url), at);
    },
    async payee(wallet) {
      const at = now();
      return payeeExams(wallet, await reader.ofPayee(wallet, at), { baseUrl, now: at });
    },
  };
}

/** An exam so old that it is not among those that are read has been superseded, or has expired. */
function placed(exam: EndedExam, exams: readonly EndedExam[], at: Date): Placed {
  const known = exams.some(({ order }) => order.id === exam.order.id) ? exams : [...exams, exam];
  const all = standings(known, at);
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
