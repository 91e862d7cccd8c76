import { drawBadge } from "../../certificates/badge.ts";
import type { SharedAddresses, SharedRecord } from "../../certificates/shared-addresses.ts";
import { Problem } from "../../platform/http/errors.ts";
import { parseOrigin } from "../../platform/web/web-origin.ts";
import { CERTIFICATE_ENTRIES } from "../../log/log-paths.ts";
import type { PublicLog } from "../../log/public-log.ts";
import { asPrefix, pathFault } from "../consent.ts";
import type { Site } from "../record.ts";
import { examAppearance } from "./appearance.ts";
import { SELLER_BADGE, sellerRecord } from "./document.ts";
import { exchangesOf, namedTransactions } from "./evidence.ts";
import { sellerPreview } from "./preview.ts";
import type { FoundExam, Published } from "./read-published.ts";
import { SELLER_CREDENTIAL, SELLER_RECORD, SELLER_VERIFICATION } from "./schemas.ts";
import { renderSellerPage } from "./seller-page.ts";
import { renderSellerVerification } from "./seller-verification-page.ts";

export interface SellerAddressParts {
  readonly sellers: Published;
  readonly publicLog: Pick<PublicLog, "places">;
  /** No trailing slash. */
  readonly baseUrl: string;
  readonly now: () => Date;
}

/** Exams at the addresses that they share with certificates. */
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

async function certificate({ exam, placed }: FoundExam, parts: SellerAddressParts): Promise<SharedRecord> {
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
