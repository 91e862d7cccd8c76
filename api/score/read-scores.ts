import type { CertificateFact } from "../../packages/verifier/src/score/v1/facts.ts";
import { scoreDocument } from "../../packages/verifier/src/score/v2/document.ts";
import type { ScoreFacts } from "../../packages/verifier/src/score/v2/facts.ts";
import type { ScoreDocument } from "../../packages/verifier/src/score/v2/record.ts";
import { certUrl } from "../certification/links.ts";
import type { Address } from "../kernel/wallet.ts";
import type { ScoreCertificates, ScoredCertificate, ScoreIndex } from "./score-sources.ts";

export interface ScoreParts {
  readonly index: ScoreIndex;
  readonly certificates: ScoreCertificates;
  readonly baseUrl: string;
  readonly now: () => Date;
}

export interface Scores {
  /** One record per wallet, in the given order, all as of one block; null while the index is unavailable. */
  of(wallets: readonly Address[]): Promise<readonly ScoreDocument[] | null>;
  /** Whether the index answers for these wallets. */
  ready(wallets: readonly Address[]): Promise<boolean>;
}

export const createScores = (parts: ScoreParts): Scores => ({
  async of(wallets) {
    const facts = await readFacts(parts, wallets);
    return facts && Promise.all(facts.map((one) => scoreDocument(one)));
  },
  ready: async (wallets) => (await parts.index.read(wallets, parts.now())) !== null,
});

async function readFacts(
  { index, certificates, baseUrl, now }: ScoreParts,
  wallets: readonly Address[],
): Promise<readonly ScoreFacts[] | null> {
  const [readings, standings] = await Promise.all([index.read(wallets, now()), certificates.newest(wallets)]);
  return (
    readings?.map((reading, place) => ({
      wallet: wallets[place] as Address,
      ...reading,
      certificates: (standings[place] ?? []).map((certificate) => certificateFact(certificate, baseUrl)),
    })) ?? null
  );
}

const certificateFact = (certificate: ScoredCertificate, baseUrl: string): CertificateFact => ({
  id: certificate.id,
  url: certUrl(baseUrl, certificate),
  product: certificate.product,
  result: certificate.result,
  issued_at: certificate.issuedAt.toISOString(),
  valid_until: certificate.validUntil.toISOString(),
  reversed_at: null,
});
