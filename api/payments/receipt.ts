import type { PaymentRequirements } from "@x402/core/types";
import type { PaidRoute } from "../platform/http/route.ts";
import { memoize } from "../platform/memo.ts";
import { formatUsd } from "../platform/money.ts";
import { explorerTransactionUrl, type Network } from "../platform/networks.ts";
import { jcs } from "../platform/signing/document.ts";
import type { Address, Hex } from "../platform/wallet.ts";

/** A settled payment, found by its transaction. */
export interface Purchase {
  readonly network: Network;
  readonly transaction: Hex;
  readonly block: number;
  readonly final: boolean;
  readonly payer: Address;
  readonly payTo: Address;
  readonly value: bigint;
  readonly route: string;
  /** Path of the public record it bought, if any. */
  readonly location: string | null;
}

export interface Receipts {
  /** A transaction may carry more than one settlement. */
  byTransaction(transaction: Hex): Promise<readonly Purchase[]>;
}

/** Returns the response of `/receipt?transaction=`, with at least one purchase. */
export function receiptDocument(
  purchases: readonly [Purchase, ...Purchase[]],
  baseUrl: string,
  routeOf: (id: string) => Pick<PaidRoute, "path" | "privacy"> | undefined,
) {
  const [{ network, transaction, block, final }] = purchases;
  return {
    transaction,
    network,
    block,
    final,
    explorer_url: explorerTransactionUrl(network, transaction),
    purchases: purchases.map(({ payer, payTo, value, route: id, location }) => {
      const route = routeOf(id);
      return {
        payer,
        pay_to: payTo,
        amount: value.toString(),
        amount_usd: formatUsd(value),
        resource: `${baseUrl}${route?.path ?? `/${id}`}`,
        record_url: location === null || route?.privacy?.isRecordUnlisted ? null : `${baseUrl}${location}`,
      };
    }),
  };
}

/** The extension's name in `extensions` of a 402 and of `PAYMENT-RESPONSE`. */
const NAME = "offer-receipt";

/** The minimum validity of an offer, in seconds. */
const OFFER_SECONDS = 300;

/** Offers made in the same minute expire together, so each is signed once a minute. */
const SHARED_SECONDS = 60;

/** Signed offers kept for the next 402 of the same minute. */
const MOST_KEPT = 1_000;

/** The purchase and its settlement on the chain. */
export interface Settled {
  readonly network: Network;
  readonly url: string;
  readonly payer: Address;
  readonly transaction: Hex;
}

export type OfferReceipt = ReturnType<typeof createOfferReceipt>;

/**
 * Creates the x402 extension `offer-receipt`, version 1, in its JWS form: a compact JWS over the RFC 8785 form of the
 * payload. It omits the extension's optional schemas, because clients echo all of `extensions` in a header. Each method
 * returns members for `extensions`.
 * @param signJws signs a payload with the key of the service's did:web identifier
 */
export function createOfferReceipt(signJws: (payload: string) => Promise<string>) {
  const signed = memoize<Promise<string>>(MOST_KEPT);
  return {
    /** One signed offer for each entry of `accepts`, in its order. */
    async offers(
      resourceUrl: string,
      accepts: readonly PaymentRequirements[],
      at: Date,
    ): Promise<Record<string, unknown>> {
      const validUntil = (Math.floor(at.getTime() / 1000 / SHARED_SECONDS) + 1) * SHARED_SECONDS + OFFER_SECONDS;
      const offers = accepts.map(async ({ scheme, network, asset, payTo, amount }, acceptIndex) => {
        const payload = { version: 1, resourceUrl, scheme, network, asset, payTo, amount, validUntil };
        return { format: "jws", acceptIndex, signature: await signed(jcs(payload), signJws) };
      });
      return { [NAME]: { info: { offers: await Promise.all(offers) } } };
    },
    /** `at` is when the payment came in, so that the receipt of a replay is the same. */
    async receipt(
      { network, url: resourceUrl, payer, transaction }: Settled,
      at: Date,
    ): Promise<Record<string, unknown>> {
      const payload = { version: 1, network, resourceUrl, payer, issuedAt: unixTime(at), transaction };
      return { [NAME]: { info: { receipt: { format: "jws", signature: await signJws(jcs(payload)) } } } };
    },
  };
}

const unixTime = (at: Date): number => Math.floor(at.getTime() / 1000);
