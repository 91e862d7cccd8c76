import { hkdfSync, randomBytes } from "node:crypto";
import type pg from "pg";
import type { Logger } from "pino";
import type { Config } from "../platform/config/config.ts";
import { createPurchaseLists, type PurchaseParts } from "./list-purchases.ts";
import { PURCHASES_PATH } from "./routes.ts";
import { createNonces, NONCE_CHANCE_BYTES } from "./sign-in.ts";
import { createPurchaseStore } from "./store.ts";

export interface PurchaseWires extends Pick<PurchaseParts, "chains" | "schemes" | "now"> {
  readonly config: Pick<Config, "baseUrl" | "sealingKey">;
  readonly pool: pg.Pool;
  readonly log: Logger;
}

/** What wallets that sign in are shown. Processes share the sealing key, so each takes the nonces of the others. */
export function wirePurchases({ config, pool, log, ...parts }: PurchaseWires) {
  const uri = `${config.baseUrl}${PURCHASES_PATH}`;
  const secret = Buffer.from(hkdfSync("sha256", config.sealingKey, "", "sign-in nonces", 32));
  return createPurchaseLists({
    ...parts,
    store: createPurchaseStore(pool),
    nonces: createNonces(secret, uri),
    chance: () => randomBytes(NONCE_CHANCE_BYTES),
    uri,
    // What a node's client throws may quote the signature.
    failed: (error) => log.warn({ reason: (error as Error).name }, "a sign-in could not be verified"),
  });
}
