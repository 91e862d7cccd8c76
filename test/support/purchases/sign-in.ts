import { createSIWxMessage, encodeSIWxHeader, type SIWxPayload } from "@x402/extensions/sign-in-with-x";
import type { LocalAccount } from "viem";
import { type Answer, challengeOf, send } from "../payments/requests.ts";

/** What a wallet is asked to sign, with the chain it signs for. */
export type SignInChallenge = Parameters<typeof createSIWxMessage>[0];

/** Who signs messages; a smart wallet's owner signs for an address that is not its own. */
export type Signatory = Pick<LocalAccount, "address" | "signMessage">;

export const purchasesUrl = (service: string, query: Readonly<Record<string, string>> = {}): string =>
  `${service}/purchases${Object.keys(query).length === 0 ? "" : `?${new URLSearchParams(query)}`}`;

/** The challenge of a 402. */
export function challengeIn(answer: Answer): SignInChallenge {
  const { info, supportedChains } = (challengeOf(answer).extensions as { readonly "sign-in-with-x": Extension })[
    "sign-in-with-x"
  ];
  const [chain] = supportedChains;
  if (chain === undefined) throw new Error("the challenge names no chain");
  return { ...info, chainId: chain.chainId, type: chain.type };
}

interface Extension {
  readonly info: Omit<SignInChallenge, "chainId" | "type">;
  readonly supportedChains: readonly { readonly chainId: string; readonly type: "eip191" }[];
}

/** Signs a challenge as it stands, with the stock library's text. */
export async function signed(
  { address, signMessage }: Signatory,
  challenge: SignInChallenge,
): Promise<SIWxPayload & { readonly signature: string }> {
  const signature = await signMessage({ message: createSIWxMessage(challenge, address) });
  return { ...challenge, address, signature };
}

/** Sends a sign-in: a payload, or any header. */
export const present = (url: string, signIn: SIWxPayload | string, headers = {}): Promise<Answer> =>
  send(url, {
    headers: { ...headers, "SIGN-IN-WITH-X": typeof signIn === "string" ? signIn : encodeSIWxHeader(signIn) },
  });

/** Asks for a challenge, signs it and sends it. */
export async function signInAt(url: string, wallet: Signatory, headers = {}): Promise<Answer> {
  return present(url, await signed(wallet, challengeIn(await send(url))), headers);
}

export interface ListedPurchase {
  readonly resource: string;
  readonly amount: string;
  readonly transaction: string;
  readonly received_at: string;
  readonly receipt: { readonly format: "jws"; readonly signature: string };
  readonly answer: { readonly status: number; readonly body: Record<string, unknown> } | null;
  readonly answer_state: string;
  readonly answer_from: string | null;
  readonly payment_id: string | null;
}

export interface PurchasePage {
  readonly wallet: string;
  readonly purchases: readonly ListedPurchase[];
  readonly next: string | null;
}

/** The page in an answer; fails unless it is one. */
export function pageIn({ status, text, body }: Answer): PurchasePage {
  if (status !== 200) throw new Error(`no page: ${status} ${text}`);
  return body as unknown as PurchasePage;
}

/** Every purchase of a wallet, page by page, each with a sign-in of its own. */
export async function allPurchases(url: string, wallet: Signatory): Promise<readonly PurchasePage[]> {
  const pages: PurchasePage[] = [];
  for (let next: string | null = url; next !== null; next = pages.at(-1)?.next ?? null)
    pages.push(pageIn(await signInAt(next, wallet)));
  return pages;
}
