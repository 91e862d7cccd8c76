import { hkdfSync, randomBytes } from "node:crypto";
import type { OfferReceipt, Scheme } from "../payments/index.ts";
import type { Config } from "../platform/config/config.ts";
import type { Listed } from "../platform/http/route.ts";
import { type Platform, type Table, under } from "../platform/slice.ts";
import { createPurchaseLists } from "./list-purchases.ts";
import { PURCHASES_PATH, purchaseRoutes } from "./routes.ts";
import { createNonces } from "./sign-in.ts";
import { createPurchaseStore } from "./store.ts";

export { SIGN_IN_REQUIRED } from "./schemas.ts";
export { SIGN_IN, SIGN_IN_HEADER } from "./sign-in.ts";

interface PurchaseNeeds {
  readonly schemes: ReadonlyMap<string, Scheme>;
  readonly offerReceipt: OfferReceipt;
}

/** Creates the list of purchases. Processes share the sealing key, so each accepts the nonces of the others. */
export function createPurchases(platform: Platform, config: Config, { schemes, offerReceipt }: PurchaseNeeds) {
  const { baseUrl, sealingKey, retiredSealingKeys } = config;
  const { pool, chains, log, now, peers } = platform;
  const uri = `${baseUrl}${PURCHASES_PATH}`;
  const secretOf = (key: Uint8Array) => Buffer.from(hkdfSync("sha256", key, "", "sign-in nonces", 32));
  const purchases = createPurchaseLists({
    chains,
    schemes,
    now,
    store: createPurchaseStore(pool),
    nonces: createNonces([secretOf(sealingKey), ...retiredSealingKeys.map(secretOf)], uri, randomBytes),
    uri,
    // An RPC error may quote the signature, so log only its name.
    failed: (error) => log.warn({ reason: (error as Error).name }, "a sign-in could not be verified"),
  });
  return {
    routes: (routes: Table): readonly Listed[] =>
      under("Discovery", purchaseRoutes({ purchases, peers, offerReceipt, baseUrl, now, routes })),
  };
}
