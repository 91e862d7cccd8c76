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
import { KEY, STRANGER } from "../../packages/verifier/samples.ts";
import { sends } from "./rows.ts";
import { jws, type SignedTerms, type Terms, typed } from "./signed-terms.ts";
import { CLAIMS, judged, type Site } from "./site.ts";

export const BASE = NETWORKS["eip155:8453"];
export const SEPOLIA = NETWORKS["eip155:84532"];
const DAY = Date.parse(VERSION_2.policy.effective_date) / 1000;
const PAID_AT = DAY + 86_400;
export const NOW = new Date((DAY + 2 * 86_400) * 1000);
export const TX = `0x${"ab".repeat(32)}`;
const seller = privateKeyToAccount(`0x${"11".repeat(32)}`);
const stranger = privateKeyToAccount(`0x${"22".repeat(32)}`);
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
const PAYMENT: WalletTransfer = {
  ...{ logIndex: 7, asset: BASE.usdc.address, to: payTo, value: 250_000n },
  ...{ byAuthorization: true, toHasCode: false },
};

/** Serves the DID document of the offers' site during one test. */
export function showDocument(site: Site): void {
  site.requests.length = 0;
  site.handlers.set("/.well-known/did.json", sends(200, {}, JSON.stringify(didDocument(SHOP_DID, [KEY.publicJwk]))));
}

export interface Case {
  readonly offer?: SignedTerms;
  /** Null for a claim without a receipt. */
  readonly receipt?: SignedTerms | null;
  readonly network?: string;
  readonly transaction?: string;
  readonly claimant?: Address;
  /** The reading of the transaction on each network. By default, the payment on Base. */
  readonly chain?: Readonly<Record<string, TransactionReading>>;
}

export const paidBy = (...transfers: readonly WalletTransfer[]): TransactionReading => ({
  outcome: "final",
  block: 1_000,
  time: PAID_AT,
  transfers,
});
const NOT_FOUND: TransactionReading = { outcome: "not_found" };

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

/** Submits the claim as its claimant and gathers the evidence. */
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

const unasked = () => Promise.reject(new Error("not requested"));

/** The verdict and every condition that is not true. */
export const verdictLines = (evidence: Evidence): readonly string[] => [
  evidence.verdict,
  ...judged(evidence).filter((line) => !/^\w+ (true|unknown not_judged)/.test(line)),
];

/** A claim, and its conditions that are not true, as `condition result reason`. */
export type BreachRow = readonly [title: string, given: () => Promise<Case>, lines: readonly string[]];

export const DEAR: WalletTransfer = { ...PAYMENT, value: 250_001n };
const ELSEWHERE: WalletTransfer = { ...PAYMENT, to: OTHER };

/** A hold under another scheme for the same URL. */
const HELD: WalletTransfer = { ...ELSEWHERE, value: 300_000n, toHasCode: true };

export const REFUNDED: readonly BreachRow[] = [
  ["more than offered", async () => ({ chain: { [BASE.id]: paidBy(DEAR) } }), ["amount false more"]],
  ["another payee was paid", async () => ({ chain: { [BASE.id]: paidBy(ELSEWHERE) } }), ["payee false mismatch"]],
  [
    "another asset was offered",
    async () => ({ offer: await offered({ asset: OTHER }) }),
    ["asset false mismatch", "amount unknown other_asset"],
  ],
  [
    "a test network was offered and real USDC paid",
    async () => ({
      offer: await offered({ network: SEPOLIA.id, asset: SEPOLIA.usdc.address }),
      receipt: await receipted({ network: SEPOLIA.id }),
    }),
    ["network false mismatch"],
  ],
  [
    "an offer by a key of the resource's host",
    async () => ({
      offer: byHost(),
      receipt: byHost(RECEIPT),
      chain: { [BASE.id]: paidBy(DEAR) },
    }),
    ["amount false more"],
  ],
];

export const RELEASED: readonly (readonly [title: string, given: () => Promise<Case>])[] = [
  ["at the last second of the offer", async () => ({})],
  [
    "to an escrow that the offer names",
    async () => ({
      offer: byHost({ ...OFFER, payTo: OTHER }),
      receipt: byHost(RECEIPT),
      chain: { [BASE.id]: paidBy({ ...PAYMENT, to: OTHER, toHasCode: true }) },
    }),
  ],
  ["by any call", async () => ({ chain: { [BASE.id]: paidBy({ ...PAYMENT, byAuthorization: false }) } })],
  ["signed by a key of the resource's host", async () => ({ offer: byHost(), receipt: byHost(RECEIPT) })],
  [
    "with other transfers of the payer in the same transaction",
    async () => ({ chain: { [BASE.id]: paidBy({ ...DEAR, logIndex: 3 }, PAYMENT, { ...ELSEWHERE, logIndex: 9 }) } }),
  ],
  [
    "with addresses and hashes in another letter case",
    async () => ({
      offer: await offered({ payTo, asset: BASE.usdc.address.toUpperCase().replace("0X", "0x") }),
      receipt: await receipted({
        payer: buyer.toUpperCase().replace("0X", "0x"),
        transaction: TX.replace(/ab/g, "AB"),
      }),
    }),
  ],
];

const dear = { chain: { [BASE.id]: paidBy(DEAR), [SEPOLIA.id]: NOT_FOUND } };
const elsewhere = didWeb("https://evil.example");

/** Each case has a transfer that would be refunded if everything else were proven. */
export const ESCALATED: readonly BreachRow[] = [
  [
    "a hold in an escrow, which the same URL offers too",
    async () => ({ chain: { [BASE.id]: paidBy(HELD) } }),
    ["settlement unknown paid_to_contract"],
  ],
  [
    "a recipient whose code was not read",
    async () => ({ chain: { [BASE.id]: paidBy({ ...ELSEWHERE, toHasCode: null }) } }),
    ["settlement unknown recipient_not_read"],
  ],
  [
    "more than offered by another scheme's call, as upto has it",
    async () => ({ chain: { [BASE.id]: paidBy({ ...DEAR, byAuthorization: false }) } }),
    ["settlement unknown not_by_authorization"],
  ],
  [
    "no receipt",
    async () => ({ ...dear, receipt: null }),
    ["receipt unknown no_receipt", "claimant unknown no_receipt"],
  ],
  [
    "an offer by a stranger for the seller",
    async () => ({ ...dear, offer: await offered({}, stranger) }),
    ["offer unknown not_by_payee"],
  ],
  [
    "a receipt by a stranger",
    async () => ({ ...dear, receipt: await receipted({}, stranger) }),
    ["receipt unknown not_by_payee"],
  ],
  [
    "a stranger's own offer of the seller's URL, with the seller's receipt",
    async () => ({ offer: await offered({ payTo: stranger.address, amount: "1" }, stranger) }),
    ["receipt unknown not_by_payee"],
  ],
  [
    "a stranger's own offer, with the host's receipt",
    async () => ({
      offer: await offered({ payTo: stranger.address, amount: "1" }, stranger),
      receipt: byHost(RECEIPT),
    }),
    ["receipt unknown other_signer"],
  ],
  ["a receipt in the other format", async () => ({ ...dear, offer: byHost() }), ["receipt unknown other_signer"]],
  [
    "a JWS by a key of another host",
    async () => ({
      ...dear,
      offer: byHost(OFFER, { ...HEADER, kid: keyUrl(elsewhere, KEY.publicJwk) }),
      receipt: byHost(RECEIPT),
    }),
    ["offer unknown other_host", "receipt unknown other_host"],
  ],
  [
    "a receipt by a key of another host",
    async () => ({
      ...dear,
      offer: byHost(),
      receipt: byHost(RECEIPT, { ...HEADER, kid: keyUrl(elsewhere, KEY.publicJwk) }),
    }),
    ["receipt unknown other_signer"],
  ],
  [
    "a JWS by a key that the host does not list",
    async () => ({
      ...dear,
      offer: jws(STRANGER, { ...HEADER, kid: keyUrl(SHOP_DID, STRANGER.publicJwk) }, OFFER),
      receipt: byHost(RECEIPT),
    }),
    ["offer unknown not_listed"],
  ],
  [
    "a JWS by a stranger in the host's name",
    async () => ({ ...dear, offer: jws(STRANGER, HEADER, OFFER), receipt: byHost(RECEIPT) }),
    ["offer unknown bad_signature"],
  ],
  [
    "a JWS that brings its own key",
    async () => ({
      ...dear,
      offer: jws(STRANGER, { ...HEADER, jwk: { kty: "OKP", crv: "Ed25519", x: STRANGER.publicJwk.x } }, OFFER),
      receipt: byHost(RECEIPT),
    }),
    ["offer unknown header"],
  ],
  [
    "an algorithm for another kind of key",
    async () => ({ ...dear, offer: byHost(OFFER, { ...HEADER, alg: "none" }), receipt: byHost(RECEIPT) }),
    ["offer unknown header"],
  ],
  [
    "a resource over plain http",
    async () => ({
      ...dear,
      offer: byHost({ ...OFFER, resourceUrl: "http://shop.example/haiku" }),
      receipt: byHost({ ...RECEIPT, resourceUrl: "http://shop.example/haiku" }),
    }),
    ["offer unknown other_host", "receipt unknown other_host"],
  ],
  [
    "a resource on another port of the host",
    async () => ({
      ...dear,
      offer: byHost({ ...OFFER, resourceUrl: "https://shop.example:8443/haiku" }),
      receipt: byHost(RECEIPT),
    }),
    ["offer unknown other_host", "receipt unknown other_host"],
  ],
  [
    "an offer by another scheme",
    async () => ({ ...dear, offer: await offered({ scheme: "auth-capture" }) }),
    ["offer unknown other_scheme"],
  ],
  [
    "an asset that is not an address",
    async () => ({ ...dear, offer: await offered({ asset: "USDC" }) }),
    ["offer unknown unreadable_terms"],
  ],
  [
    "an amount that is not a whole number",
    async () => ({ ...dear, offer: await offered({ amount: "0.25" }) }),
    ["offer unknown unreadable_terms"],
  ],
  [
    "a receipt of another resource",
    async () => ({ ...dear, receipt: await receipted({ resourceUrl: `${SHOP}/ode` }) }),
    ["receipt unknown other_resource"],
  ],
  [
    "a receipt of another network",
    async () => ({ ...dear, receipt: await receipted({ network: SEPOLIA.id }) }),
    ["receipt unknown other_network"],
  ],
  [
    "a receipt without a transaction",
    async () => ({ ...dear, receipt: await receipted({ transaction: "" }) }),
    ["receipt unknown names_no_transaction"],
  ],
  [
    "a JWS receipt that omits the transaction",
    async () => {
      const { transaction: _, ...without } = RECEIPT;
      return { ...dear, offer: byHost(), receipt: byHost(without) };
    },
    ["receipt unknown names_no_transaction"],
  ],
  [
    "a receipt of another transaction",
    async () => ({ ...dear, transaction: `0x${"cd".repeat(32)}` }),
    ["receipt unknown other_transaction"],
  ],
  [
    "less than offered",
    async () => ({ chain: { [BASE.id]: paidBy({ ...PAYMENT, value: 249_999n }) } }),
    ["amount unknown less"],
  ],
  ["no transfer of the claimant", async () => ({ chain: { [BASE.id]: paidBy() } }), ["settlement unknown no_transfer"]],
  [
    "several transfers, and none as offered",
    async () => ({ chain: { [BASE.id]: paidBy(DEAR, { ...ELSEWHERE, logIndex: 9 }) } }),
    ["settlement unknown several_transfers"],
  ],
  [
    "paid a second after the offer ended",
    async () => ({ chain: { [BASE.id]: { ...paidBy(DEAR), time: PAID_AT + 1 } as TransactionReading } }),
    ["time unknown offer_expired"],
  ],
  [
    "paid before the first day of version 2",
    async () => ({ chain: { [BASE.id]: { ...paidBy(DEAR), time: DAY - 1 } as TransactionReading } }),
    ["time unknown before_this_version"],
  ],
  [
    "test money instead of real money",
    async () => ({
      network: SEPOLIA.id,
      chain: { [BASE.id]: NOT_FOUND, [SEPOLIA.id]: paidBy({ ...DEAR, asset: SEPOLIA.usdc.address }) },
    }),
    ["network unknown costs_nothing"],
  ],
  [
    "the offered network shows the transaction too",
    async () => ({
      offer: await offered({ network: SEPOLIA.id }),
      receipt: await receipted({ network: SEPOLIA.id }),
      chain: { [BASE.id]: paidBy(DEAR), [SEPOLIA.id]: { outcome: "not_final" } },
    }),
    ["network unknown on_both_networks"],
  ],
  [
    "an offer on a network that is not read",
    async () => ({
      ...dear,
      offer: await offered({ network: "eip155:1" }),
      receipt: await receipted({ network: "eip155:1" }),
    }),
    ["network unknown network_not_read"],
  ],
  [
    "a settlement on a network that is not read",
    async () => ({ ...dear, network: "eip155:1" }),
    ["settlement unknown network_not_read", "time unknown not_read"],
  ],
  ...(["not_final", "not_found", "reverted", "too_many_transfers", "unavailable"] as const).map(
    (outcome): BreachRow => [
      `a transaction that is ${outcome.replace("_", " ")}`,
      async () => ({ chain: { [BASE.id]: { outcome } } }),
      [`settlement unknown ${outcome}`, "time unknown not_read"],
    ],
  ),
];
