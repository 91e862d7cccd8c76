import { privateKeyToAccount } from "viem/accounts";
import { didDocument, didWeb, keyUrl } from "../../../api/platform/signing/did.ts";
import type { Terms } from "../../support/arbiter/signed-terms.ts";
import { KEY } from "./samples.ts";

/** A shop's offer and receipt, for tests that attack them. */

export const SHOP = "https://shop.example";
export const DID = didWeb(SHOP);
export const KID = keyUrl(DID, KEY.publicJwk);
export const HEADER = { alg: "EdDSA", kid: KID };
export const BASE = "eip155:8453";
export const SEPOLIA = "eip155:84532";
export const TX = `0x${"ab".repeat(32)}`;
export const seller = privateKeyToAccount(`0x${"11".repeat(32)}`);
export const stranger = privateKeyToAccount(`0x${"22".repeat(32)}`);
export const OFFER: Terms = {
  version: 1,
  resourceUrl: `${SHOP}/haiku`,
  scheme: "exact",
  network: BASE,
  asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
  payTo: seller.address,
  amount: "250000",
  validUntil: 2_000,
};
export const RECEIPT: Terms = {
  version: 1,
  network: BASE,
  resourceUrl: `${SHOP}/haiku`,
  payer: stranger.address,
  issuedAt: 1_500,
  transaction: TX,
};
/** The DID document of the shop's host. */
export const did = JSON.stringify(didDocument(DID, [KEY.publicJwk]));
