import type pg from "pg";
import type { PublicLog } from "../../log/prove-entries.ts";
import type { Signer } from "../../platform/signing/document.ts";
import { parseAddress } from "../../platform/wallet.ts";
import { createExamStore } from "../exam-store.ts";
import { createPublished, sellerAddresses } from "./read-published.ts";
import { createPublishedExamReader } from "./store.ts";

export interface SellerWires {
  readonly pool: pg.Pool;
  readonly publicLog: PublicLog;
  readonly signer: Signer;
  readonly baseUrl: string;
  readonly now: () => Date;
}

/** What is published of exams of sellers. */
export function wireSellers({ pool, publicLog, signer, baseUrl, now }: SellerWires) {
  const store = createExamStore(pool);
  const reader = createPublishedExamReader(pool);
  const sellers = createPublished({ store, reader, signer, baseUrl, now });
  return {
    sellers,
    shared: sellerAddresses({ sellers, publicLog, baseUrl, now }),
    async payeeUrl(text: string): Promise<string | null> {
      const wallet = parseAddress(text);
      const exams = wallet === null ? [] : (await sellers.payee(wallet)).exams;
      return exams.length === 0 ? null : `${baseUrl}/payee/${wallet}`;
    },
  };
}
