import type { x402HTTPClient } from "@x402/fetch";
import { type Address, isAddress, isAddressEqual } from "viem";
import { formatUsd } from "./money.ts";

export type PaymentRequired = ReturnType<x402HTTPClient["getPaymentRequiredResponse"]>;
export type Offer = PaymentRequired["accepts"][number];

/** The only network and asset to pay with: Circle's USDC on Base. */
const NETWORK = "eip155:8453";
export const USDC = { address: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", name: "USD Coin", version: "2" } as const;
/** The longest validity of a signed authorization. */
const MAX_TIMEOUT_SECONDS = 300;

/** The allowed payee and amounts, in atomic units. */
export interface Allowed {
  readonly published: bigint;
  readonly maxPrice: bigint;
  readonly payTo: Address;
}

/** Thrown if the terms differ from the published ones, or cost too much; nothing was signed. */
export class RefusedTerms extends Error {}

/**
 * Returns the offer in USDC on Base, once it is safe to sign. @throws RefusedTerms naming the field, its value, and the
 * accepted value
 */
export function checkTerms({ accepts }: PaymentRequired, allowed: Allowed): Offer {
  const offers: readonly Partial<Offer>[] = Array.isArray(accepts) ? accepts.filter((entry) => entry !== null) : [];
  const offer = typed(offers.find(({ scheme, network }) => scheme === "exact" && network === NETWORK) ?? offers[0]);
  if (offer.scheme !== "exact") refuse("scheme", offer.scheme, "exact");
  if (offer.network !== NETWORK) refuse("network", offer.network, `${NETWORK} (Base)`);
  if (!isSame(offer.asset, USDC.address)) refuse("asset", offer.asset, `${USDC.address} (USDC)`);
  if (!isSame(offer.payTo, allowed.payTo)) refuse("payTo", offer.payTo, `the published ${allowed.payTo}`);
  checkSignedForm(offer);
  const amount = amountOf(offer);
  if (amount > allowed.published)
    refuse("amount", offer.amount, `at most the published ${allowed.published} (${formatUsd(allowed.published)} USDC)`);
  if (amount > allowed.maxPrice)
    refuse("amount", offer.amount, `at most ${allowed.maxPrice} (max_price ${formatUsd(allowed.maxPrice)} USDC)`);
  return offer;
}

const TYPES = {
  ...{ scheme: "string", network: "string", asset: "string", payTo: "string", amount: "string" },
  maxTimeoutSeconds: "number",
} as const;

/**
 * The terms are untrusted JSON: if `maxTimeoutSeconds` were a string, the stock client would sign for thousands of
 * years.
 */
function typed(offer: Partial<Offer> | undefined): Offer {
  if (offer === undefined) throw new RefusedTerms("The service offers no terms to pay. Nothing was signed.");
  for (const [field, type] of Object.entries(TYPES)) {
    const got: unknown = offer[field as keyof typeof TYPES];
    if (typeof got !== type) refuse(field, got, `a ${type}`);
  }
  return offer as Offer;
}

/** Returns an amount in atomic units. @throws RefusedTerms if it is not one */
export const amountOf = ({ amount }: Offer): bigint =>
  /^[1-9]\d{0,18}$/.test(amount) ? BigInt(amount) : refuse("amount", amount, "atomic units of USDC");

/** With such terms, the stock client would sign a Permit2 allowance, or for another contract. */
function checkSignedForm({ extra, maxTimeoutSeconds }: Offer): void {
  const { name, version, assetTransferMethod = "eip3009" } = extra ?? {};
  if (assetTransferMethod !== "eip3009") refuse("extra.assetTransferMethod", assetTransferMethod, "eip3009");
  if (name !== USDC.name) refuse("extra.name", name, USDC.name);
  if (version !== USDC.version) refuse("extra.version", version, USDC.version);
  if (!(Number.isInteger(maxTimeoutSeconds) && maxTimeoutSeconds > 0 && maxTimeoutSeconds <= MAX_TIMEOUT_SECONDS))
    refuse("maxTimeoutSeconds", maxTimeoutSeconds, `1 to ${MAX_TIMEOUT_SECONDS}`);
}

/**
 * Checks that a payment signed by an earlier call may be sent again, within the limits of this call and the user.
 * @throws RefusedTerms
 */
export function checkKept(
  kept: Pick<Offer, "amount" | "payTo">,
  { maxPrice, payTo }: Pick<Allowed, "maxPrice"> & { readonly payTo: Address | null },
): void {
  const amount = BigInt(kept.amount);
  const pending = `A payment of ${formatUsd(amount)} USDC to ${kept.payTo} is pending for this call`;
  if (payTo !== null && !isSame(kept.payTo, payTo))
    throw new RefusedTerms(`${pending}, but only ${payTo} may be paid now. Nothing was signed or sent.`);
  if (amount > maxPrice)
    throw new RefusedTerms(
      `${pending}, more than max_price ${formatUsd(maxPrice)} USDC. Nothing was signed or sent. With a max_price that covers it, this call sends the same payment again.`,
    );
}

const isSame = (got: string, wanted: Address): boolean =>
  isAddress(got, { strict: false }) && isAddressEqual(got, wanted);

function refuse(field: string, got: unknown, accepted: string): never {
  const shown = (JSON.stringify(got) ?? "missing").slice(0, 100);
  throw new RefusedTerms(`These terms are refused: ${field} is ${shown}, expected ${accepted}. Nothing was signed.`);
}
