import type { Hex, LocalAccount } from "viem";

/** The extension's name in `extensions` of a 402 and of `PAYMENT-RESPONSE`. */
const NAME = "offer-receipt";

/** The minimum validity of an offer, in seconds. */
const OFFER_SECONDS = 300;
/** Offers made in the same minute end together, so each is signed once per minute. */
const SHARED_SECONDS = 60;
/** The number of signed offers cached for the next 402 in the same minute. */
const MOST_KEPT = 1_000;

const text = (name: string) => ({ name, type: "string" }) as const;
const number = (name: string) => ({ name, type: "uint256" }) as const;

/** In the order in which the members are signed (x402, extension `offer-receipt`, version 1). */
const TYPES = {
  Offer: [
    number("version"),
    ...["resourceUrl", "scheme", "network", "asset", "payTo", "amount"].map(text),
    number("validUntil"),
  ],
  Receipt: [
    number("version"),
    ...["network", "resourceUrl", "payer"].map(text),
    number("issuedAt"),
    text("transaction"),
  ],
};

/** The terms of a 402 that an offer covers; it covers no `extra`. */
interface Terms {
  readonly scheme: string;
  readonly network: string;
  readonly asset: string;
  readonly payTo: string;
  readonly amount: string;
}

/** The resource that was paid for, and the payment's transaction. */
export interface Settled {
  readonly network: string;
  readonly resourceUrl: string;
  readonly payer: string;
  readonly transaction: string;
}

/** Signs a merchant's offers and receipts. Each method returns members for `extensions`. */
export interface OfferReceipt {
  /** Returns one signed offer for each of the terms, in their order. */
  readonly offers: (resourceUrl: string, accepts: readonly Terms[], nowMs: number) => Promise<Record<string, unknown>>;
  /** @param issuedAt Unix seconds */
  readonly receipt: (settled: Settled, issuedAt: number) => Promise<Record<string, unknown>>;
}

type Payload = Readonly<Record<string, string | number>>;

/** Returns a signer for the x402 extension `offer-receipt` in its EIP-712 form, with the payee's account. */
export function offerReceipt(account: Pick<LocalAccount, "signTypedData">): OfferReceipt {
  const kept = new Map<string, Promise<Hex>>();
  const sign = (primaryType: keyof typeof TYPES, message: Payload) =>
    // The chain id is always 1, whatever the network: the domain belongs to the extension, not to a contract.
    account.signTypedData({
      domain: { name: `x402 ${primaryType.toLowerCase()}`, version: "1", chainId: 1 },
      types: TYPES as Record<string, { name: string; type: string }[]>,
      primaryType,
      message,
    });
  const signedOnce = (payload: Payload): Promise<Hex> => {
    const name = JSON.stringify(payload);
    const known = kept.get(name);
    if (known !== undefined) return known;
    if (kept.size >= MOST_KEPT) kept.clear();
    const signature = sign("Offer", payload);
    kept.set(name, signature);
    signature.catch(() => kept.delete(name));
    return signature;
  };
  return {
    async offers(resourceUrl, accepts, nowMs) {
      const validUntil = (Math.floor(nowMs / 1000 / SHARED_SECONDS) + 1) * SHARED_SECONDS + OFFER_SECONDS;
      const offers = accepts.map(async ({ scheme, network, asset, payTo, amount }, acceptIndex) => {
        const payload = { version: 1, resourceUrl, scheme, network, asset, payTo, amount, validUntil };
        return { format: "eip712", acceptIndex, payload, signature: await signedOnce(payload) };
      });
      return { [NAME]: { info: { offers: await Promise.all(offers) } } };
    },
    async receipt({ network, resourceUrl, payer, transaction }, issuedAt) {
      const payload = { version: 1, network, resourceUrl, payer, issuedAt, transaction };
      const receipt = { format: "eip712", payload, signature: await sign("Receipt", payload) };
      return { [NAME]: { info: { receipt } } };
    },
  };
}
