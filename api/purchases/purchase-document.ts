import { formatUsd } from "../platform/money.ts";
import { explorerTransactionUrl, type Network } from "../platform/networks.ts";
import type { PaidRoute } from "../platform/http/route.ts";
import type { Address } from "../platform/wallet.ts";
import type { OfferReceipt } from "../payments/offer-receipt.ts";
import type { ShownPage, StoredPurchase } from "./purchase-ports.ts";

export interface DocumentParts {
  readonly baseUrl: string;
  readonly receipt: OfferReceipt["receipt"];
  readonly routeOf: (id: string) => PaidRoute | undefined;
  readonly now: Date;
}

/** The answer of `GET /purchases` to a wallet that has signed in. */
export const purchasesDocument = async (
  { wallet, purchases }: ShownPage,
  { network, next }: { readonly network: Network; readonly next: string | null },
  parts: DocumentParts,
) => ({
  wallet,
  network,
  purchases: await Promise.all(purchases.map((purchase) => described(wallet, purchase, parts))),
  next,
});

async function described(payer: Address, purchase: StoredPurchase, { baseUrl, receipt, routeOf, now }: DocumentParts) {
  const { network, transaction, value, receivedAt, location } = purchase;
  const route = routeOf(purchase.route);
  const url = `${baseUrl}${route?.path ?? `/${purchase.route}`}`;
  const until = withheldUntil(route, receivedAt);
  return {
    resource: url,
    amount: value.toString(),
    amount_usd: formatUsd(value),
    pay_to: purchase.payTo,
    transaction,
    block: purchase.block,
    final: purchase.final,
    explorer_url: explorerTransactionUrl(network, transaction),
    received_at: receivedAt.toISOString(),
    payment_id: clientsOwn(purchase.paymentId),
    receipt: receiptIn(await receipt({ network, url, payer, transaction }, receivedAt)),
    record_url: location === null ? null : `${baseUrl}${location}`,
    ...answerOf(purchase, until !== null && now.getTime() < until.getTime() ? until : null),
  };
}

/** An order of a running test is not explained: its answer comes with the test. */
function withheldUntil(route: PaidRoute | undefined, receivedAt: Date): Date | null {
  const { answerWithheldMinutes: minutes } = route ?? {};
  return minutes === undefined ? null : new Date(receivedAt.getTime() + minutes * 60_000);
}

interface ShownAnswer {
  readonly answer: { readonly status: number; readonly body: unknown } | null;
  readonly answer_state: "stored" | "pending" | "withheld";
  /** When a withheld answer is shown. */
  readonly answer_from: string | null;
}

function answerOf({ answer }: StoredPurchase, until: Date | null): ShownAnswer {
  if (until !== null) return { answer: null, answer_state: "withheld", answer_from: until.toISOString() };
  if (answer === null) return { answer: null, answer_state: "pending", answer_from: null };
  const body: unknown = JSON.parse(new TextDecoder().decode(answer.body));
  return { answer: { status: answer.status, body }, answer_state: "stored", answer_from: null };
}

/** Identifiers that the service gives to orders of its own have a colon, which clients' never have. */
const clientsOwn = (id: string | null): string | null => (id === null || id.includes(":") ? null : id);

const receiptIn = (extensions: Awaited<ReturnType<OfferReceipt["receipt"]>>) =>
  (extensions as { "offer-receipt": { info: { receipt: { format: string; signature: string } } } })["offer-receipt"]
    .info.receipt;
