import { type Address, getAddress, isAddress, type LocalAccount } from "viem";
import { z } from "zod";
import { type Bought, bought, errorOf, onceMore, refusalOf, StillKept, UntrustedAnswer } from "./bought.ts";
import { deliver, GIVE_UP_AFTER_MS, type Unanswered } from "./deliver.ts";
import { type Budget, formatUsd, parseUsd } from "./money.ts";
import { type PaidOutput, pendingOutput, priceOf, refusedOutput, toPay } from "./paid-output.ts";
import { type AskPaymentState, carriedBy } from "./payment-state.ts";
import type { Call, PendingPayment, PendingPayments } from "./pending-payments.ts";
import type { Product } from "./products.ts";
import { problemOf, read, type Service, type ServiceAnswer, ServiceError, type ServiceRequest } from "./service.ts";
import { sign, termsOf } from "./stock-client.ts";
import { amountOf, checkKept, checkTerms, type PaymentRequired, RefusedTerms } from "./terms.ts";

export interface Purchase {
  readonly product: Product;
  readonly body: unknown;
  /** US dollars; the product's price by default. */
  readonly maxPrice: string | number | undefined;
}

export interface Shop {
  /** Null without a key. */
  readonly payer: Address | null;
  /**
   * Buys once, and returns the result of `open` for the purchase. Without a key it returns the terms. Without a final
   * response it reports this, and the next call for the same thing sends the same payment: another one is signed only
   * once the chain shows that the first can never be charged. @throws RefusedTerms, OverBudget, CannotKeep,
   * ServiceError, UntrustedAnswer
   */
  readonly buy: <T>(purchase: Purchase, open: (bought: Bought) => Promise<T>) => Promise<T | PaidOutput>;
}

export interface ShopParts {
  readonly service: Service;
  readonly payer: LocalAccount | null;
  /** The only payee; null for the published one. */
  readonly payTo: Address | null;
  readonly budget: Budget;
  readonly pending: PendingPayments;
  /** Called before another payment is signed to replace one that bought nothing. */
  readonly askPaymentState: AskPaymentState;
  /** The maximum wait of a call, if not the default. */
  readonly giveUpAfterMs?: number;
}

const NO_KEY =
  "Nothing was bought: this server has no key to pay with. Ask the user to set PAYER_PRIVATE_KEY to the key of a wallet that holds USDC on Base and restart it, or pay these terms with any x402 client.";
const UNREAD = "the service answered as if no payment had come.";

export function createShop(parts: ShopParts): Shop {
  const { payer } = parts;
  const seller = { ...parts, published: publishedBy(parts.service) };
  const share = createSharedCalls();
  return {
    payer: payer?.address ?? null,
    buy: (purchase, open) => {
      const { product, body, maxPrice } = purchase;
      return share(JSON.stringify([product.path, body, maxPrice ?? null]), async () => {
        if (payer === null) return { answer: await quote(seller, purchase), after: async () => undefined };
        return buy({ ...seller, payer }, purchase, open);
      });
    },
  };
}

/** The result of a purchase, and the work to do once the result has been handed over. */
interface Finished<T> {
  readonly answer: T;
  readonly after: () => Promise<void>;
}

/**
 * Shares one run among calls for the same thing that come before its result: a client that gave up and repeats a call
 * does not buy twice. A call that comes after the result starts a new run, once the last one's work is done.
 */
function createSharedCalls() {
  const asked = new Map<string, Promise<unknown>>();
  const ending = new Map<string, Promise<void>>();
  return <T>(key: string, work: () => Promise<Finished<T>>): Promise<T> => {
    const run = async () => {
      await ending.get(key);
      try {
        const { answer, after } = await work();
        ending.set(
          key,
          end(after).finally(() => ending.delete(key)),
        );
        return answer;
      } finally {
        asked.delete(key);
      }
    };
    const shared = asked.get(key) ?? run();
    asked.set(key, shared);
    return shared as Promise<T>;
  };
}

/** If the program is killed after the result has left it and before this, the next call gets the result again. */
async function end(after: () => Promise<void>): Promise<void> {
  await new Promise(setImmediate);
  await after().catch((error: Error) => console.error(error.message));
}

interface Seller extends ShopParts {
  readonly published: ReturnType<typeof publishedBy>;
}

interface Buyer extends Seller {
  readonly payer: LocalAccount;
}

/** Returns the terms of an unpaid call that may be signed. @throws RefusedTerms */
async function acceptable({ service, published, payTo }: Seller, { product, body, maxPrice }: Purchase) {
  const known = await published(product.path);
  const required = await askTerms(service, { path: product.path, body });
  const offer = checkTerms(required, {
    published: known.amount,
    payTo: payTo ?? known.payTo,
    maxPrice: mostOf({ product, maxPrice }),
  });
  return { required, offer };
}

const mostOf = ({ product, maxPrice }: Pick<Purchase, "product" | "maxPrice">): bigint =>
  maxPrice === undefined ? product.price : (parseUsd(String(maxPrice)) ?? 0n);

async function quote(seller: Seller, purchase: Purchase): Promise<PaidOutput> {
  const { offer } = await acceptable(seller, purchase);
  return { status: "payment_required", price: priceOf(offer), budget: budgetNow(seller), what_to_do: NO_KEY };
}

const budgetNow = ({ budget }: ShopParts) => ({
  limit_usd: formatUsd(budget.limit),
  spent_usd: formatUsd(budget.spent()),
});

/** Buys with the payment of an earlier call if there is one, else with a new one. */
async function buy<T>(buyer: Buyer, purchase: Purchase, open: Open<T>): Promise<Finished<T | PaidOutput>> {
  const call = { key: keyOf(buyer, purchase), began: Date.now() };
  const kept = await buyer.pending.find(call);
  const once = { purchase, call, open };
  return (kept === null ? null : await resume(buyer, once, kept)) ?? payFor(buyer, once, kept);
}

type Open<T> = (bought: Bought) => Promise<T>;

interface Once<T> {
  readonly purchase: Purchase;
  readonly call: Call;
  readonly open: Open<T>;
}

async function payFor<T>(buyer: Buyer, once: Once<T>, over: PendingPayment | null) {
  let isNew = false;
  const { required, offer } = await acceptable(buyer, once.purchase);
  const payment = await buyer.pending.keep(once.call, over, async () => {
    isNew = true;
    buyer.budget.take(amountOf(offer));
    const { amount, payTo, network, maxTimeoutSeconds } = offer;
    const headers = await sign(buyer.payer, required, offer);
    return { headers, amount, payTo, network, maxTimeoutSeconds, signedAt: new Date().toISOString() };
  });
  // Another program signed it meanwhile, under its own caller's limits.
  if (!isNew) checkAllowed(buyer, once.purchase, payment);
  return finish(buyer, once, { payment, isNew, answer: await send(buyer, once.purchase, payment) });
}

const checkAllowed = ({ payTo }: Buyer, purchase: Purchase, payment: PendingPayment): void =>
  checkKept(payment, { payTo, maxPrice: mostOf(purchase) });

/** Sends a stored payment again. Null if it can never be charged and bought nothing: another one may be signed. */
async function resume<T>(
  buyer: Buyer,
  once: Once<T>,
  payment: PendingPayment,
): Promise<Finished<T | PaidOutput> | null> {
  try {
    checkAllowed(buyer, once.purchase, payment);
    const answer = await send(buyer, once.purchase, payment);
    if ("reason" in answer || answer.status === 200)
      return await finish(buyer, once, { payment, isNew: false, answer });
    return await refused(buyer, once.call, { payment, refusal: refusalOf(answer) });
  } catch (error) {
    if (![RefusedTerms, UntrustedAnswer, StillKept].some((kind) => error instanceof kind)) throw error;
    if ((await buyer.askPaymentState(carriedBy(payment))).type === "over") return null;
    throw error;
  }
}

/** Returns the result while a payment that the service refuses is not over. Null once it is. */
async function refused(
  buyer: Buyer,
  { key }: Call,
  { payment, refusal }: { readonly payment: PendingPayment; readonly refusal: string },
): Promise<Finished<PaidOutput> | null> {
  const state = await buyer.askPaymentState(carriedBy(payment));
  if (state.type === "over") return null;
  if (state.type === "open") return unfinished(refusedOutput(payment, budgetNow(buyer), { refusal, why: state.why }));
  throw new ServiceError(
    `A payment of ${toPay(payment)} was charged, although ${refusal} For ${state.why} Nothing else was signed. The tool my_purchases lists what the wallet has bought, with the answers. ${onceMore(buyer.pending.fileOf(key))}`,
  );
}

const unfinished = (answer: PaidOutput): Finished<PaidOutput> => ({ answer, after: async () => undefined });

interface Sent {
  readonly payment: PendingPayment;
  /** Whether this call signed it. */
  readonly isNew: boolean;
  readonly answer: ServiceAnswer | Unanswered;
}

const keyOf = ({ service, payer }: Buyer, { product, body }: Purchase) => ({
  service: service.baseUrl,
  path: product.path,
  body,
  wallet: payer.address,
});

async function send(
  { service, giveUpAfterMs = GIVE_UP_AFTER_MS }: Buyer,
  { product: { path }, body }: Purchase,
  { headers }: PendingPayment,
): Promise<ServiceAnswer | Unanswered> {
  const answer = await deliver(service, { path, body, headers }, giveUpAfterMs);
  if ("reason" in answer || answer.status !== 402) return answer;
  // An intermediary may have dropped the payment's header. Then this 402 proves nothing.
  const unpaid = await askTerms(service, { path, body }).catch(() => null);
  return unpaid === null || unpaid.error === errorOf(answer) ? { reason: UNREAD } : answer;
}

/** Turns the service's response into the tool's result. A payment ends here only once its purchase has arrived. */
async function finish<T>(
  buyer: Buyer,
  { purchase, call, open }: Once<T>,
  { payment, isNew, answer }: Sent,
): Promise<Finished<T | PaidOutput>> {
  const budget = budgetNow(buyer);
  if ("reason" in answer) return unfinished(pendingOutput(payment, budget, answer.reason));
  const arrived = new Date();
  const { path } = purchase.product;
  const file = buyer.pending.fileOf(call.key);
  const sale = bought({ path, payment, isNew, payer: buyer.payer.address, budget, file, answer });
  return { answer: await open(sale), after: () => buyer.pending.answered(call.key, payment, arrived) };
}

/** Requests the terms of an unpaid call. @throws ServiceError */
export async function askTerms(service: Service, request: ServiceRequest): Promise<PaymentRequired> {
  const { path } = request;
  const answer = await service.send(request);
  if (answer.status !== 402) throw new ServiceError(`${path}: expected its terms (402); ${problemOf(answer)}`);
  return termsOf(answer.headers);
}

/** The published facts about a paid path: the price in atomic units, and the payee. */
interface Published {
  readonly amount: bigint;
  readonly payTo: Address;
}

const address = z.string().refine((text) => isAddress(text, { strict: false }), "expected an address");

const MANIFEST = z.object({
  resources: z.array(z.object({ resource: z.string(), amount: z.string().regex(/^\d{1,19}$/), payTo: address })),
});

/** Reads `/.well-known/x402` on first use and caches it for the whole session; later changes are ignored. */
function publishedBy(service: Service): (path: string) => Promise<Published> {
  let manifest: Promise<z.infer<typeof MANIFEST>> | null = null;
  return async (path) => {
    manifest ??= readManifest(service);
    // A failed read is retried next time.
    manifest.catch(() => (manifest = null));
    const found = (await manifest).resources.find(({ resource }) => resource === `${service.baseUrl}${path}`);
    if (found === undefined) throw new ServiceError(`The service publishes no price for ${path}. Nothing was signed.`);
    return { amount: BigInt(found.amount), payTo: getAddress(found.payTo) };
  };
}

async function readManifest(service: Service): Promise<z.infer<typeof MANIFEST>> {
  const manifest = MANIFEST.safeParse((await read(service, "/.well-known/x402")).document);
  if (!manifest.success) throw new ServiceError("/.well-known/x402 is not an x402 manifest. Nothing was signed.");
  return manifest.data;
}
