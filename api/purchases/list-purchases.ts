import { hashMessage } from "viem";
import { needsCode } from "../../packages/escrow/src/signature-forms.ts";
import { isAccountSignature, type OfferReceipt, type Scheme, undeployed } from "../payments/index.ts";
import type { Chain } from "../platform/chain/view.ts";
import type { PaidRoute, PaymentKey } from "../platform/http/route.ts";
import { formatUsd } from "../platform/money.ts";
import { explorerTransactionUrl, type Network } from "../platform/networks.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import {
  checkSignIn,
  type Expected,
  type Nonces,
  type Refusal,
  refused,
  type SignedText,
  type SignIn,
  type SignInInfo,
  signInInfo,
} from "./sign-in.ts";
import type { AskedPurchases, PurchaseStore, ShownPage, StoredPurchase } from "./store.ts";

export interface PurchaseParts {
  readonly store: PurchaseStore;
  readonly nonces: Nonces;
  readonly chains: Readonly<Record<Network, Pick<Chain, "verifyContractSignature" | "isDeployed">>>;
  /** Some schemes can verify signatures of wallets without code. */
  readonly schemes: ReadonlyMap<string, Pick<Scheme, "isSignedOtherwise">>;
  /** The absolute URL that a wallet signs in to. */
  readonly uri: string;
  readonly now: () => Date;
  /** Receives the error if a signature could not be verified. */
  readonly failed: (error: unknown) => void;
}

export type Asked = Omit<AskedPurchases, "payer">;

interface AskedBy extends Asked {
  /** The key of its sender in the rate limits. */
  readonly client: string;
}

export type PurchaseLists = ReturnType<typeof createPurchaseLists>;

type RouteOf = (id: string) => PaidRoute | undefined;

/** True if the wallet signed, else the reason for the refusal. */
type Verdict = true | Refusal;

const UNSIGNED = refused("signature", "The signature is not this wallet's signature of the challenge as issued.");
const USED = refused("nonce", "The nonce was already used. A sign-in is good for one page.");

export function createPurchaseLists(parts: PurchaseParts) {
  const { store, nonces, uri, now } = parts;
  return {
    /** Returns a new challenge. Nothing is stored. */
    challenge(network: Network): SignInInfo {
      const at = now();
      return signInInfo(uri, { nonce: nonces.issue(network, at), at });
    },
    /**
     * Returns a page of the wallet that signed in, or the reason for a refusal. A sign-in is good for one page. `unread`
     * means that the wallet's code must verify the signature but the chain is unreachable; the sign-in is not used up.
     */
    async show(
      signIn: SignIn,
      { client, ...asked }: AskedBy,
      routeOf: RouteOf,
    ): Promise<ShownPage | Refusal | "unread"> {
      const { network } = asked;
      const expected: Expected = { uri, network, issuedAt: (nonce) => nonces.issuedAt(network, nonce) };
      const signed = checkSignIn(signIn, expected, now());
      if ("why" in signed) return signed;
      const isTheirs = await isSigned(parts, { ...signed, network }, client).catch((error: unknown) => {
        parts.failed(error);
        return "unread" as const;
      });
      if (isTheirs !== true) return isTheirs;
      // Only a valid signature leaves a row. Challenges, and responses to them that prove nothing, cost no storage.
      if (!(await store.useNonce(signIn.nonce))) return USED;
      const page = await store.page({ ...asked, payer: signed.payer });
      await Promise.all(
        page.purchases.map((purchase) => runBeforeResult({ payer: signed.payer, client }, purchase, routeOf)),
      );
      return { wallet: signed.payer, ...page };
    },
  };
}

/** Accepts the same signatures as payments: an account's key, ERC-1271 on this network, or a wallet not deployed yet. */
async function isSigned(
  { chains, schemes }: PurchaseParts,
  { network, payer, text, signature }: SignedText & { readonly network: Network },
  client: string,
): Promise<Verdict> {
  const digest = hashMessage(text);
  if (isAccountSignature(payer, digest, signature)) return true;
  if (await chains[network].verifyContractSignature({ payer, digest, signature }, client)) return true;
  for (const { isSignedOtherwise } of schemes.values())
    if (await isSignedOtherwise?.({ network, payer, digest, signature }, client)) return true;
  const isDeployed = !needsCode(signature) || (await chains[network].isDeployed(payer, client));
  return isDeployed ? UNSIGNED : refused("signature", undeployed(payer, network));
}

/** Runs the route's hook before its stored response is sent. */
async function runBeforeResult(
  { payer, client }: { readonly payer: Address; readonly client: string },
  purchase: StoredPurchase,
  routeOf: RouteOf,
): Promise<void> {
  if (purchase.answer === null) return;
  const { network, asset, nonce } = purchase;
  const key: PaymentKey = { network, asset, payer, nonce };
  await routeOf(purchase.route)?.hooks?.beforeResult?.(key, client);
}

export interface DocumentParts {
  readonly baseUrl: string;
  readonly receipt: OfferReceipt["receipt"];
  readonly routeOf: (id: string) => PaidRoute | undefined;
  readonly now: Date;
}

/** Returns the response of `GET /purchases` to a wallet that has signed in. */
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

/** The response to an order is withheld while its test may be running. */
function withheldUntil(route: PaidRoute | undefined, receivedAt: Date): Date | null {
  const { answerWithheldMinutes: minutes } = route?.privacy ?? {};
  return minutes === undefined ? null : new Date(receivedAt.getTime() + minutes * 60_000);
}

interface ShownAnswer {
  readonly answer: { readonly status: number; readonly body: unknown } | null;
  readonly answer_state: "stored" | "pending" | "withheld";
  /** When a withheld answer will be shown. */
  readonly answer_from: string | null;
}

function answerOf({ answer }: StoredPurchase, until: Date | null): ShownAnswer {
  if (until !== null) return { answer: null, answer_state: "withheld", answer_from: until.toISOString() };
  if (answer === null) return { answer: null, answer_state: "pending", answer_from: null };
  const body: unknown = JSON.parse(new TextDecoder().decode(answer.body));
  return { answer: { status: answer.status, body }, answer_state: "stored", answer_from: null };
}

/** The service's own identifiers have a colon, which clients' identifiers cannot have. */
const clientsOwn = (id: string | null): string | null => (id === null || id.includes(":") ? null : id);

const receiptIn = (extensions: Awaited<ReturnType<OfferReceipt["receipt"]>>) =>
  (extensions as { "offer-receipt": { info: { receipt: { format: string; signature: string } } } })["offer-receipt"]
    .info.receipt;

/** The last purchase of a page. The next page begins after it. */
export interface Cursor {
  readonly receivedAt: Date;
  readonly nonce: Hex;
}

const FORM = /^(\d{1,14})\.(0x[0-9a-f]{64})$/;

/** Encodes an opaque cursor. It grants nothing, because the next page takes another sign-in. */
export const encodeCursor = ({ receivedAt, nonce }: Cursor): string =>
  Buffer.from(`${receivedAt.getTime()}.${nonce}`).toString("base64url");

/** Parses a cursor. Returns null if this service cannot have issued it. */
export function parseCursor(text: string): Cursor | null {
  const [, time, nonce] = FORM.exec(Buffer.from(text, "base64url").toString("latin1")) ?? [];
  const place = { receivedAt: new Date(Number(time)), nonce: nonce as Hex };
  return time !== undefined && encodeCursor(place) === text ? place : null;
}
