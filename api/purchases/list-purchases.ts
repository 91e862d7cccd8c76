import { hashMessage } from "viem";
import { needsCode } from "../../packages/escrow/src/signature-forms.ts";
import type { Network } from "../platform/networks.ts";
import type { PaidRoute, PaymentKey } from "../platform/http/route.ts";
import type { Address } from "../platform/wallet.ts";
import type { Chain } from "../payments/chain.ts";
import type { Scheme } from "../payments/scheme.ts";
import { isAccountSignature, undeployed } from "../payments/signature.ts";
import type { Nonces } from "./nonce.ts";
import type { AskedPurchases, PurchaseStore, ShownPage, StoredPurchase } from "./purchase-ports.ts";
import {
  checkSignIn,
  type Expected,
  type Refusal,
  refused,
  type SignedText,
  type SignIn,
  type SignInInfo,
  signedText,
  signInInfo,
} from "./sign-in.ts";

export interface PurchaseParts {
  readonly store: PurchaseStore;
  readonly nonces: Nonces;
  readonly chance: () => Uint8Array;
  readonly chains: Readonly<Record<Network, Pick<Chain, "verifyContractSignature" | "isDeployed">>>;
  /** Some know signatures of wallets without code. */
  readonly schemes: ReadonlyMap<string, Pick<Scheme, "isSignedOtherwise">>;
  /** The absolute URL that is signed in to. */
  readonly uri: string;
  readonly now: () => Date;
  /** Receives why a signature could not be verified. */
  readonly failed: (error: unknown) => void;
}

export type Asked = Omit<AskedPurchases, "payer">;

interface AskedBy extends Asked {
  /** The key that its sender is counted under. */
  readonly client: string;
}

export interface PurchaseLists {
  /** A new challenge. Nothing is stored. */
  readonly challenge: (network: Network) => SignInInfo;
  /**
   * A page of the wallet that signed in, or why there is none. A sign-in shows one page, once. `unread`: the wallet's code
   * has to say whether it signed, and the chain cannot be read; the sign-in is not used up.
   */
  readonly show: (signIn: SignIn, asked: AskedBy, routeOf: RouteOf) => Promise<ShownPage | Refusal | "unread">;
}

type RouteOf = (id: string) => PaidRoute | undefined;

/** Signed, or why not. */
type Verdict = true | Refusal;

const UNSIGNED = refused("signature", "The signature is not this wallet's, over the challenge as it was issued.");
const USED = refused("nonce", "The nonce was used before: a sign-in shows one page, once.");

export function createPurchaseLists(parts: PurchaseParts): PurchaseLists {
  const { store, nonces, chance, uri, now } = parts;
  return {
    challenge(network) {
      const at = now();
      return signInInfo(uri, { nonce: nonces.issue(network, at, chance()), at });
    },
    async show(signIn, { client, ...asked }, routeOf) {
      const { network } = asked;
      const expected: Expected = { uri, network, issuedAt: (nonce) => nonces.issuedAt(network, nonce) };
      const wrong = checkSignIn(signIn, expected, now());
      if (wrong !== null) return wrong;
      const signed = signedText(signIn, expected);
      const isTheirs = await isSigned(parts, { ...signed, network }, client).catch((error: unknown) => {
        parts.failed(error);
        return "unread" as const;
      });
      if (isTheirs !== true) return isTheirs;
      // Only what was signed leaves a row: challenges, and answers to them that prove nothing, cost no storage.
      if (!(await store.useNonce(signIn.nonce))) return USED;
      const page = await store.page({ ...asked, payer: signed.payer });
      await Promise.all(page.purchases.map((purchase) => told({ payer: signed.payer, client }, purchase, routeOf)));
      return { wallet: signed.payer, ...page };
    },
  };
}

/** As a payer signs: an account's key, a contract by ERC-1271 on this network, or a wallet that may be deployed later. */
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

/** What a route does before its stored answer is sent. */
async function told(
  { payer, client }: { readonly payer: Address; readonly client: string },
  purchase: StoredPurchase,
  routeOf: RouteOf,
): Promise<void> {
  if (purchase.answer === null) return;
  const { network, asset, nonce } = purchase;
  const key: PaymentKey = { network, asset, payer, nonce };
  await routeOf(purchase.route)?.told?.(key, client);
}
