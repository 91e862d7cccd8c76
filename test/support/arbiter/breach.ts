import { privateKeyToAccount } from "viem/accounts";
import { claimSchema } from "../../../api/arbiter/claim.ts";
import type { Evidence, TransactionReading, WalletTransfer } from "../../../api/arbiter/evidence.ts";
import { gatherEvidence } from "../../../api/arbiter/gather-evidence.ts";
import type { Category } from "../../../api/arbiter/policy/category.ts";
import { offerBreach } from "../../../api/arbiter/policy/v2/offer-breach.ts";
import { VERSION_2 } from "../../../api/arbiter/policy/v2/policy.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { didDocument, didWeb, keyUrl } from "../../../api/platform/signing/did.ts";
import type { Address } from "../../../api/platform/wallet.ts";
import { KEY } from "../../packages/verifier/samples.ts";
import { sends } from "./rows.ts";
import { jws, type SignedTerms, type Terms, typed } from "./signed-terms.ts";
import { CLAIMS, judged, type Site } from "./site.ts";

export const BASE = NETWORKS["eip155:8453"];
export const SEPOLIA = NETWORKS["eip155:84532"];
export const DAY = Date.parse(VERSION_2.policy.effective_date) / 1000;
export const PAID_AT = DAY + 86_400;
export const NOW = new Date((DAY + 2 * 86_400) * 1000);
export const TX = `0x${"ab".repeat(32)}`;
const seller = privateKeyToAccount(`0x${"11".repeat(32)}`);
export const stranger = privateKeyToAccount(`0x${"22".repeat(32)}`);
export const buyer = privateKeyToAccount(`0x${"33".repeat(32)}`).address.toLowerCase() as Address;
export const payTo = seller.address.toLowerCase() as Address;
export const OTHER = stranger.address.toLowerCase() as Address;
export const SHOP = "https://shop.example";
export const SHOP_DID = didWeb(SHOP);
export const HEADER = { alg: "EdDSA", kid: keyUrl(SHOP_DID, KEY.publicJwk) };

export const OFFER: Terms = {
  version: 1,
  resourceUrl: `${SHOP}/haiku`,
  scheme: "exact",
  network: BASE.id,
  asset: BASE.usdc.address,
  payTo: seller.address,
  amount: "250000",
  validUntil: PAID_AT,
};
export const RECEIPT: Terms = {
  version: 1,
  network: BASE.id,
  resourceUrl: `${SHOP}/haiku`,
  payer: buyer,
  issuedAt: PAID_AT - 2,
  transaction: TX,
};
export const PAYMENT: WalletTransfer = { logIndex: 7, asset: BASE.usdc.address, to: payTo, value: 250_000n };

/** The site that the offers are of, with its DID document, for one test. */
export function showDocument(site: Site): void {
  site.requests.length = 0;
  site.handlers.set("/.well-known/did.json", sends(200, {}, JSON.stringify(didDocument(SHOP_DID, [KEY.publicJwk]))));
}

export interface Case {
  readonly offer?: SignedTerms;
  /** Null for a claim without one. */
  readonly receipt?: SignedTerms | null;
  readonly network?: string;
  readonly transaction?: string;
  readonly claimant?: Address;
  /** What each network shows; by default the payment on Base. */
  readonly chain?: Readonly<Record<string, TransactionReading>>;
}

export const paidBy = (...transfers: readonly WalletTransfer[]): TransactionReading => ({
  outcome: "final",
  block: 1_000,
  time: PAID_AT,
  transfers,
});
export const NOT_FOUND: TransactionReading = { outcome: "not_found" };

export const byHost = (offer: Terms = OFFER, header: object = HEADER) => jws(KEY, header, offer);
export const offered = (changes: Partial<Terms> = {}, by = seller) =>
  typed(by, "Offer", { ...OFFER, ...changes } as Terms);
export const receipted = (changes: Partial<Terms> = {}, by = seller) =>
  typed(by, "Receipt", { ...RECEIPT, ...changes } as Terms);

/** The verdict's claim, as a buyer submits it. */
export async function conditionsOf(given: Case) {
  const receipt = given.receipt === undefined ? await receipted() : given.receipt;
  return {
    offer: given.offer ?? (await offered()),
    ...(receipt && { receipt }),
    settlement: { network: given.network ?? BASE.id, transaction: given.transaction ?? TX },
  };
}

/** The claim as it is submitted, taken in as its claimant's, and judged. */
export async function evidenceOn(site: Pick<Site, "fetcher">, given: Case): Promise<Evidence> {
  const conditions = await conditionsOf(given);
  const claims = { ...CLAIMS, now: () => NOW };
  const claim = claimSchema(claims).parse({ category: "offer-breach", conditions });
  const { claimedBy } = offerBreach as Required<Category>;
  const claimed = claimedBy(claim.conditions, given.claimant ?? buyer);
  if ("refused" in claimed) throw new Error(claimed.refused.message);
  const chain = given.chain ?? { [BASE.id]: paidBy(PAYMENT), [SEPOLIA.id]: NOT_FOUND };
  const read = async ({ network }: { readonly network: string }) =>
    chain[network] ?? ({ outcome: "network_not_read" } as const);
  const parts = {
    ...claims,
    fetcher: site.fetcher(),
    checkRuns: { read: unasked, suites: unasked, statuses: unasked },
    wait: unasked,
    transactions: { read },
  };
  return gatherEvidence(parts, { ...claim, conditions: claimed.conditions }, new AbortController().signal);
}

const unasked = () => Promise.reject(new Error("not asked for"));

/** The verdict, and every condition that is not true. */
export const told = (evidence: Evidence): readonly string[] => [
  evidence.verdict,
  ...judged(evidence).filter((line) => !/^\w+ (true|unknown not_judged)/.test(line)),
];
