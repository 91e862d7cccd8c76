import type { CertificateFact, ChainReading, ScoreFacts, SellerExam } from "../../packages/verifier/src/score/facts.ts";
import type { ScoreDocument } from "../../packages/verifier/src/score/record.ts";
import { scoreDocument } from "../../packages/verifier/src/score/score.ts";
import { type Certificate, certUrl } from "../certificates/index.ts";
import type { Address } from "../platform/wallet.ts";
import type { ScoreIndex } from "./index-store.ts";
import { type LookUps, type Snapshots, withLookup } from "./lookup/look-up.ts";
import type { ScoreCertificates, ScoreExams } from "./store.ts";

interface ScoreParts {
  readonly index: ScoreIndex;
  readonly lookUps: LookUps;
  readonly certificates: ScoreCertificates;
  readonly exams: ScoreExams;
  readonly baseUrl: string;
  readonly now: () => Date;
}

export type Scores = ReturnType<typeof createScores>;

export const createScores = (parts: ScoreParts) => ({
  /**
   * Returns one record per wallet, in the given order, all as of one block; null while the index is unavailable or a
   * look-up is missing.
   */
  async of(wallets: readonly Address[]): Promise<readonly ScoreDocument[] | null> {
    const facts = await readFacts(parts, wallets);
    if (facts !== "incomplete") return documentsOf(facts);
    // It was complete when the payment was accepted, which may be long ago.
    if ((await parts.lookUps.prepare(wallets, PAID)) !== null) return null;
    const again = await readFacts(parts, wallets);
    return again === "incomplete" ? null : documentsOf(again);
  },
  /** Returns whether all facts behind the scores of these wallets are available, without asking a node. */
  async ready(wallets: readonly Address[]): Promise<boolean> {
    const readings = await parts.index.read(wallets, parts.now());
    return readings !== null && (!needLookUps(readings) || (await parts.lookUps.found(wallets))?.isComplete === true);
  },
  prepare: parts.lookUps.prepare,
});

/** The client on whose behalf the facts of a paid score are looked up. */
const PAID = "paid";

const documentsOf = async (facts: readonly ScoreFacts[] | null): Promise<readonly ScoreDocument[] | null> =>
  facts && Promise.all(facts.map((one) => scoreDocument(one)));

async function readFacts(
  { index, lookUps, certificates, exams, baseUrl, now }: ScoreParts,
  wallets: readonly Address[],
): Promise<readonly ScoreFacts[] | "incomplete" | null> {
  const at = now();
  const [readings, standings, examined] = await Promise.all([
    index.read(wallets, at),
    certificates.newest(wallets),
    exams.newest(wallets, at),
  ]);
  if (readings === null) return null;
  const found = needLookUps(readings) ? await lookUps.found(wallets) : NOTHING_FOUND;
  if (found === null) return null;
  if (!found.isComplete) return "incomplete";
  return readings.map((reading, place) => {
    const wallet = wallets[place] as Address;
    return {
      wallet,
      ...withLookup(wallet, reading, found.snapshots.get(wallet)),
      certificates: (standings[place] ?? []).map((certificate) => certificateFact(certificate, baseUrl)),
      seller_exams: (examined[place] ?? []).map((exam) => examFact(exam, baseUrl)),
    };
  });
}

const needLookUps = (readings: readonly ChainReading[]): boolean =>
  readings.some(({ chain }) => chain.scope === "selective");
const NOTHING_FOUND: Snapshots = { isComplete: true, snapshots: new Map() };

const certificateFact = (certificate: ScoredCertificate, baseUrl: string): CertificateFact => ({
  id: certificate.id,
  url: certUrl(baseUrl, certificate),
  product: certificate.product,
  result: certificate.result,
  issued_at: certificate.issuedAt.toISOString(),
  valid_until: certificate.validUntil.toISOString(),
  reversed_at: null,
});

const examFact = ({ issuedAt, validUntil, ...exam }: ScoredExam, baseUrl: string): SellerExam => ({
  ...exam,
  url: certUrl(baseUrl, exam),
  issued_at: issuedAt.toISOString(),
  valid_until: validUntil.toISOString(),
});

/** A certificate of a test that the score considers. */
export type ScoredCertificate = Pick<Certificate, "id" | "product" | "result" | "issuedAt" | "validUntil">;

/** An exam of a seller that is paid at the wallet. */
export interface ScoredExam extends Omit<SellerExam, "url" | "issued_at" | "valid_until"> {
  readonly issuedAt: Date;
  readonly validUntil: Date;
}
