import { type Address, type Client, createClient, formatEther, type Hex, http, type LocalAccount } from "viem";
import { getBalance, getGasPrice } from "viem/actions";
import * as answers from "./answers.ts";
import { type ContestHeaders, signedForBuyer } from "./contest.ts";
import { type ContestConditions, parseContest } from "./contest-terms.ts";
import { readable } from "./cross-origin.ts";
import type { PaymentHeaders } from "./envelope.ts";
import { EXACT, exactRequirements, readExact } from "./exact-terms.ts";
import { type Forward, forwardTo } from "./forward.ts";
import { HOLD_GAS, type SendHold, sendFrom } from "./hold.ts";
import { formatUsd, parseAmount } from "./money.ts";
import { type OfferReceipt, offerReceipt } from "./offer-receipt.ts";
import { payerSignature } from "./payer-signature.ts";
import { type DecodedHeader, decodePaymentHeaders, isFor } from "./payment-header.ts";
import { readEscrows } from "./read-escrow.ts";
import { type Delivered, type Purchase, type SaleParts, sell, type Unsold } from "./sale.ts";
import { type Payment, readPayment, requirements, rulesOf } from "./schemes.ts";
import { sellExact } from "./sell-exact.ts";
import type { DeliveryStore } from "./stores/delivery-store.ts";
import { sharedMemory } from "./stores/memory-store.ts";
import { type EscrowFacts, LEAST_AMOUNT, MAX_TIMEOUT_SECONDS, networkOf, type Offer } from "./terms.ts";
import { parseLeastSecondsLeft } from "./time-left.ts";
import { refusalOf, type Validated } from "./validate.ts";

/** The options of a merchant, regardless of the server's framework. */
export interface SellerOptions {
  /**
   * The merchant: receives the payments, signs deliveries and, unless `hold` is given, sends the holds and pays their
   * gas. A function is called once, on the first request, so a build that only loads the route needs no key.
   */
  readonly account: LocalAccount | (() => LocalAccount);
  /** JSON-RPC of the chain to sell on; either this or `client`. A function is called as for `account`. */
  readonly rpcUrl?: string | (() => string | undefined);
  readonly client?: Client;
  /** US dollars like "0.10", or atomic units of USDC. */
  readonly price: string | bigint;
  /** The trust service, such as "https://trust.example". */
  readonly arbiterUrl: string;
  /**
   * The contracts to sell through: an escrow, an operator, or one of each. If omitted, the trust service is queried once
   * for the contracts that it arbitrates.
   */
  readonly escrow?: Address | readonly Address[];
  /**
   * Factories that may deploy a buyer's wallet together with its hold (ERC-6492), at the expense of the hold's sender;
   * default none. A deployed wallet needs none.
   */
  readonly walletFactories?: readonly Address[];
  /**
   * The number of seconds of a hold's 30 minutes that must be left when the handler starts, 60 to 1800; default 1200.
   * Set it higher than the longest run of your handler. It does not apply to a hold that this request made.
   */
  readonly leastSecondsLeft?: number;
  /**
   * The number of seconds after a good delivery in which its buyer may contest it, 0 to 1200; default 0. The money is
   * released when they have passed, or as soon as the contest is answered.
   */
  readonly contestSeconds?: number;
  /** Your promises about the response, or about a public URL; the buyer's contest can have them checked. */
  readonly contestConditions?: ContestConditions;
  /**
   * Whether ordinary buyers can pay as well, by a last term of the scheme `exact`, which pays the merchant immediately.
   * Its buyer has no hold, no arbiter, and no refund, and the terms state this. Default false.
   */
  readonly exact?: boolean;
  /** A description of the goods for the buyer. */
  readonly description?: string;
  /**
   * Whether `account` signs offers and receipts (x402 extension `offer-receipt`); default true. An offer is signed once
   * per minute for each requested URL, even without a payment.
   */
  readonly signsOffers?: boolean;
  /**
   * The origin that buyers use, such as "https://shop.example", for signed URLs. By default it is taken from the
   * request, which may be wrong behind a proxy, and is the sender's choice if the server accepts any `Host`.
   */
  readonly origin?: string;
  /** Sends `authorize` to the chain instead of `account`, and returns the transaction. */
  readonly hold?: SendHold;
  /** By default in memory, shared by all routes of the process, bounded. */
  readonly store?: DeliveryStore;
  /** Gives a delivery to the arbiter; `POST {arbiterUrl}/escrow/verify` by default. */
  readonly forward?: Forward;
  /** Receives errors that no response can report; `console.error` by default. */
  readonly log?: (message: string, cause?: unknown) => void;
}

/** A request from a framework's adapter. */
export interface SaleRequest {
  readonly method: string;
  /** Absolute. */
  readonly url: string;
  /** The header `PAYMENT-SIGNATURE`; undefined or null if it is absent. */
  readonly payment: string | null | undefined;
  /** The header `X-PAYMENT`, in which some clients send a payment of version 2. */
  readonly xPayment?: string | null | undefined;
  /**
   * Reads all of a paid request before anything is held for it, so that the handler does not depend on the buyer's
   * connection. Returns a refusal like `validate`; rejects if the buyer hung up.
   */
  readonly receive?: () => Promise<Validated>;
  /** The merchant's own check of the input. */
  readonly validate: () => Validated | Promise<Validated>;
  readonly run: Purchase["run"];
}

/**
 * Sells requests through the escrow: an unpaid one gets a 402 with the terms; a paid one is held on chain, then
 * handled, and its response goes to the arbiter, which releases or refunds the money.
 * @returns rejects with an error that `validate` throws, for the server to answer with a 500; nothing was held
 * @throws TypeError for an invalid price, contest, origin, or `leastSecondsLeft`, or without a node URL
 */
export function createSeller(options: SellerOptions): (request: SaleRequest) => Promise<Response> {
  const open = counter(options);
  return async (request) => readable(await serve(request, await open()));
}

/** Everything needed to serve a request; null while the escrow cannot be read. */
interface Counter {
  readonly account: LocalAccount;
  readonly arbiterUrl: string;
  readonly parts: Omit<SaleParts, "escrow">;
  /** The same goods for the same price through each contract, starting with what stock clients can pay. */
  readonly offers: readonly Offer[];
  readonly walletFactories: readonly Address[];
  readonly takesExact: boolean;
  readonly description: string;
  /** Null if the merchant does not sign its offers. */
  readonly signed: OfferReceipt | null;
  readonly origin: string | undefined;
}

/** Reads the contracts on the first request, and again after a failure. */
function counter(options: SellerOptions): () => Promise<Counter | null> {
  const price = parsePrice(options.price);
  const contest = parseContest(options.contestSeconds, options.contestConditions);
  const leastSecondsLeft = parseLeastSecondsLeft(options.leastSecondsLeft, contest);
  const arbiterUrl = options.arbiterUrl.replace(/\/+$/, "");
  const { description = "", walletFactories = [], origin, exact: takesExact = false } = options;
  if (origin !== undefined && !isOrigin(origin))
    throw new TypeError(`origin is ${origin}; expected an origin like "https://shop.example", without a path.`);
  const { log = console.error } = options;
  if (options.escrow?.length === 0) throw new TypeError("escrow is an empty list: name a contract, or omit it.");
  if (options.client === undefined && options.rpcUrl === undefined) throw new TypeError(NO_NODE);
  const store = options.store ?? sharedMemory;
  const open = () => {
    const account = typeof options.account === "function" ? options.account() : options.account;
    const client = clientOf(options);
    const send = options.hold ?? sendFrom(client, account);
    const forward = options.forward ?? forwardTo(arbiterUrl, account);
    if (options.hold === undefined) void tellWithoutGas(client, account.address, log);
    const parts = { client, send, forward, store, log, leastSecondsLeft };
    return { account, client, parts, signed: options.signsOffers === false ? null : offerReceipt(account) };
  };
  let opened = typeof options.account === "function" || typeof options.rpcUrl === "function" ? undefined : open();
  let known: Promise<readonly EscrowFacts[]> | undefined;
  return async () => {
    opened ??= open();
    const { account, client, parts, signed } = opened;
    known ??= readEscrows(client, arbiterUrl, options.escrow);
    try {
      const offers = (await known).map((escrow) => ({ escrow, merchant: account.address, price, contest }));
      return { account, arbiterUrl, parts, offers, walletFactories, takesExact, description, signed, origin };
    } catch (error) {
      known = undefined;
      log("The escrow could not be read.", error);
      return null;
    }
  };
}

function parsePrice(text: string | bigint): bigint {
  const price = parseAmount(text);
  if (price < LEAST_AMOUNT)
    throw new TypeError(`The escrow holds at least ${formatUsd(LEAST_AMOUNT)} USDC; the price is ${formatUsd(price)}.`);
  return price;
}

const isOrigin = (text: string): boolean => URL.canParse(text) && new URL(text).origin === text;

const NO_NODE = "escrowed() needs rpcUrl or client to reach the chain it sells on.";

function clientOf({ client, rpcUrl }: SellerOptions): Client {
  if (client !== undefined) return client;
  const url = typeof rpcUrl === "function" ? rpcUrl() : rpcUrl;
  if (url === undefined) throw new TypeError(NO_NODE);
  return createClient({ transport: http(url) });
}

const otherResource = (resource: unknown): string =>
  `The payment is for ${String(resource).slice(0, 200)}, which is a different resource. Nothing was held. Do not sign again; ` +
  "send the same header there.";

/**
 * Logs a warning if the account that sends the holds cannot pay for one. If the node does not respond, nothing is
 * logged.
 */
async function tellWithoutGas(client: Client, address: Address, log: SaleParts["log"]): Promise<void> {
  try {
    const [balance, gasPrice] = await Promise.all([getBalance(client, { address }), getGasPrice(client)]);
    if (balance < HOLD_GAS * gasPrice)
      log(
        `The merchant's account ${address} has ${formatEther(balance)} ETH, too little for the gas of a hold: sales fail until it has more.`,
      );
  } catch {
    // The first sale will report the node's failure.
  }
}

/** The shop's own check threw: the error is the server's to handle. */
class CheckFailed extends Error {}

const UNREAD = "The terms could not be created. Send the same request again.";
const UNKNOWN = "The payment could not be completed. Do not sign again; send the same header again.";

async function serve(request: SaleRequest, counter: Counter | null): Promise<Response> {
  if (counter === null)
    return answers.unavailable("The escrow is temporarily unreachable. Send the same request again.");
  const { parts, offers, description } = counter;
  const exact = counter.takesExact ? offers[0] : undefined;
  const url = counter.origin === undefined ? request.url : request.url.replace(/^\w+:\/\/[^/]+/, counter.origin);
  const validate = async () => {
    try {
      return refusalOf(await request.validate());
    } catch (cause) {
      throw new CheckFailed("The check of a request's input failed.", { cause });
    }
  };
  const refuse = async (error: string) => {
    const now = Date.now();
    const accepts = [
      ...offers.map((offer) => requirements(offer, now)),
      ...(exact === undefined ? [] : [exactRequirements(exact)]),
    ];
    const extensions = await orNone(parts.log, () => counter.signed?.offers(url, accepts, now));
    return answers.paymentRequired({ accepts, url, description, error, extensions });
  };
  try {
    const headers = { "PAYMENT-SIGNATURE": request.payment, "X-PAYMENT": request.xPayment };
    const ordinary = exact === undefined ? null : ordinaryIn(headers);
    if (ordinary !== null && !isFor(ordinary.resource, url)) return answers.conflict(otherResource(ordinary.resource));
    const received = async () => refusalOf(await request.receive?.()) ?? (await validate());
    const purchase = { resource: resourceOf(request), validate: received, run: request.run };
    if (ordinary !== null && exact !== undefined && request.method !== "HEAD")
      return await serveExact(ordinary, { counter, offer: exact, purchase, refuse, url });
    const payment = readPayment(headers, offers, Date.now());
    if (payment === null) return (await validate()) ?? refuse("Payment required.");
    if (request.method === "HEAD")
      return answers.malformed(
        "A HEAD request has no response to pay for. Nothing was held; send the same header with GET.",
      );
    if ("malformed" in payment) return answers.malformed(payment.malformed);
    if ("refused" in payment) return refuse(payment.refused);
    if (!isFor(payment.resource, url)) return answers.conflict(otherResource(payment.resource));
    const { offer, info } = payment;
    const checked = await checkSignature(counter, payment);
    if ("refused" in checked) return refuse(checked.refused);
    const sale = { ...parts, escrow: offer.escrow };
    const outcome = await sell(sale, { ...purchase, payment: { ...payment, ...checked } });
    if (outcome.type === "delivered")
      return answers.delivered(outcome, {
        offer,
        payer: info.payer,
        contest: await forBuyer(counter, payment, outcome),
        extensions: await receiptFor(counter, payment, { outcome, url }),
      });
    return outcome.type === "withheld"
      ? answers.withheld(outcome, { offer, payer: info.payer, arbiterUrl: counter.arbiterUrl })
      : await unsold(outcome, refuse);
  } catch (error) {
    if (error instanceof CheckFailed) throw error.cause;
    const isPaid = (request.payment ?? request.xPayment ?? null) !== null;
    parts.log(isPaid ? "A payment could not be completed." : "The terms could not be created.", error);
    return answers.unavailable(isPaid ? UNKNOWN : UNREAD);
  }
}

/** Returns the response to a payment that gets no goods. */
function unsold(outcome: Unsold, refuse: (error: string) => Promise<Response>): Response | Promise<Response> {
  switch (outcome.type) {
    case "payment_required":
      return refuse(outcome.error);
    case "conflict":
      return answers.conflict(outcome.error);
    case "not_yet":
      return answers.unavailable(outcome.error);
    case "invalid":
      return outcome.refusal;
    default:
      return outcome satisfies never;
  }
}

/** Returns the decoded header of a payment by `exact`; null for any other. */
function ordinaryIn(headers: PaymentHeaders): DecodedHeader | null {
  const decoded = decodePaymentHeaders(headers);
  return decoded !== null && "payload" in decoded && decoded.accepted.scheme === EXACT ? decoded : null;
}

interface ExactSale {
  readonly counter: Counter;
  readonly offer: Offer;
  readonly purchase: Omit<Purchase, "payment">;
  readonly refuse: (error: string) => Promise<Response>;
  readonly url: string;
}

async function serveExact(header: DecodedHeader, sale: ExactSale): Promise<Response> {
  const { counter, offer, purchase, refuse, url } = sale;
  const payment = readExact(header, offer, Date.now());
  if ("malformed" in payment) return answers.malformed(payment.malformed);
  if ("refused" in payment) return refuse(payment.refused);
  const { account, parts, signed } = counter;
  const { client, store, log } = parts;
  const { chainId, usdc } = offer.escrow;
  const payer = payment.authorization.from;
  const chain = { client, account, chainId, usdc: usdc.address };
  const outcome = await sellExact({ chain, store, log }, { ...purchase, payment });
  if (outcome.type === "failed") return answers.passedOn(outcome.delivery);
  if (outcome.type !== "sold") return unsold(outcome, refuse);
  const { transaction } = outcome.delivery;
  const settled = { network: networkOf(offer.escrow), resourceUrl: url, payer, transaction };
  const signedAt = Number(payment.authorization.validBefore) - MAX_TIMEOUT_SECONDS;
  const extensions = await orNone(log, () => signed?.receipt(settled, signedAt));
  return answers.sold(outcome, { offer, payer, extensions });
}

/** If a signature cannot be made, the response is sent without it. */
async function orNone(
  log: SaleParts["log"],
  sign: () => Promise<answers.Extensions> | undefined,
): Promise<answers.Extensions> {
  try {
    return (await sign()) ?? {};
  } catch (error) {
    log("An offer or a receipt could not be signed.", error);
    return {};
  }
}

/**
 * Returns a receipt for a released payment only, because a refund is not a sale. Its date is when the payment was
 * signed, so that a replay has the same one.
 */
const receiptFor = (
  { parts, signed }: Counter,
  { info, offer }: Payment & { readonly offer: Offer },
  { outcome: { delivery }, url }: { outcome: Delivered; url: string },
): Promise<answers.Extensions> =>
  orNone(parts.log, () => {
    if (delivery.decision !== "release") return undefined;
    const { transaction } = delivery;
    const settled = { network: networkOf(offer.escrow), resourceUrl: url, payer: info.payer, transaction };
    return signed?.receipt(settled, info.preApprovalExpiry - MAX_TIMEOUT_SECONDS);
  });

/** Signs a released delivery for its buyer too, as proof of what it received. */
const forBuyer = async (
  { account, arbiterUrl }: Counter,
  { contest, offer: { escrow } }: Payment & { readonly offer: Offer },
  { id, delivery }: Delivered,
): Promise<ContestHeaders | null> =>
  contest === undefined || delivery.decision !== "release"
    ? null
    : signedForBuyer(account, { arbiterUrl, escrow, id, delivery, contest });

/** Returns a payment's signature in the form that the hold needs, or the reason for refusing it. */
async function checkSignature(
  { parts, walletFactories }: Counter,
  { offer: { escrow }, info, signature }: Payment & { readonly offer: Offer },
): Promise<{ readonly signature: Hex } | { readonly refused: string }> {
  const rules = rulesOf(escrow);
  const deploys = rules.deploys(signature, walletFactories);
  const checked = await payerSignature(parts.client, escrow, { info, signature, deploys });
  if (checked === null) return { refused: rules.notSigned(info.payer) };
  return checked === "undeployed" ? { refused: rules.undeployed(info.payer, walletFactories) } : { signature: checked };
}

const resourceOf = ({ method, url }: SaleRequest): string => {
  const { pathname, search } = new URL(url);
  return `${method} ${pathname}${search}`;
};
