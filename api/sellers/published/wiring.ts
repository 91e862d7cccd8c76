import type pg from "pg";
import { createExamStore } from "../store.ts";
import { createPublishedExamReader } from "./store.ts";
import { parseAddress } from "../../platform/wallet.ts";
import type { PublicLog } from "../../log/public-log.ts";
import { createPublished } from "./read-published.ts";
import { sellerAddresses } from "./seller-addresses.ts";
import type { Signer } from "../../platform/signing/document.ts";

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
