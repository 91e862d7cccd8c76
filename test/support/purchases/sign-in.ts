import { createSIWxMessage, encodeSIWxHeader, type SIWxPayload } from "@x402/extensions/sign-in-with-x";
import { type Hex, hashMessage, type LocalAccount } from "viem";
import { type Answer, challengeOf, send } from "../payments/requests.ts";
import { highS } from "../payments/signing.ts";

/** The challenge for a wallet's signature, with its chain. */
export type SignInChallenge = Parameters<typeof createSIWxMessage>[0];

/** A signer of messages. A smart wallet's owner signs for another address than its own. */
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

/** Signs a challenge unchanged, with the stock library's text. */
export async function signed(
  { address, signMessage }: Signatory,
  challenge: SignInChallenge,
): Promise<SIWxPayload & { readonly signature: string }> {
  const signature = await signMessage({ message: createSIWxMessage(challenge, address) });
  return { ...challenge, address, signature };
}

/** Sends a sign-in as a payload or as any header. */
export const present = (url: string, signIn: SIWxPayload | string, headers = {}): Promise<Answer> =>
  send(url, {
    headers: { ...headers, "SIGN-IN-WITH-X": typeof signIn === "string" ? signIn : encodeSIWxHeader(signIn) },
  });

/** Requests a challenge, signs it, and sends it. */
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

/** The page in a response. @throws if it has none */
export function pageIn({ status, text, body }: Answer): PurchasePage {
  if (status !== 200) throw new Error(`no page: ${status} ${text}`);
  return body as unknown as PurchasePage;
}

/** Every purchase of a wallet, page by page, with a new sign-in for each page. */
export async function allPurchases(url: string, wallet: Signatory): Promise<readonly PurchasePage[]> {
  const pages: PurchasePage[] = [];
  for (let next: string | null = url; next !== null; next = pages.at(-1)?.next ?? null)
    pages.push(pageIn(await signInAt(next, wallet)));
  return pages;
}

/**
 * The attacker's means: one of our challenges, a wallet with purchases that signs anything, and one without purchases.
 */
interface Hand {
  readonly challenge: SignInChallenge;
  readonly victim: Signatory;
  readonly self: Signatory;
}

type Make = (hand: Hand) => Promise<SIWxPayload>;

/** The code of the refusal is without its common prefix. */
type Attack = readonly [name: string, make: Make, code: string];

const MINUTES = 60_000;

/** Invalid sign-ins, each from a new challenge. */
export const attacksOn = (service: string): readonly Attack[] => [
  ...changedOn(service).map(([name, change, code]): Attack => [name, signedAs(change), code]),
  ...FORGED.map(([name, make]): Attack => [name, make, "signature"]),
];

type Change = (own: SignInChallenge) => object;

/** The victim signs exactly the sent text. */
const signedAs =
  (change: Change): Make =>
  ({ challenge, victim }) =>
    signed(victim, { ...challenge, ...change(challenge) } as SignInChallenge);

const later = (at: string, ms: number): string => new Date(Date.parse(at) + ms).toISOString();
const flipped = (nonce: string): string => `${nonce.slice(0, -1)}${nonce.endsWith("0") ? "1" : "0"}`;

const changedOn = (service: string): readonly (readonly [string, Change, string])[] => [
  ["a sign-in to another domain", () => ({ domain: "evil.example" }), "domain_mismatch"],
  ["our domain at another port", () => ({ domain: "localhost:1" }), "domain_mismatch"],
  ["another uri", () => ({ uri: "https://evil.example/purchases" }), "uri_mismatch"],
  ["another path of ours", () => ({ uri: `${service}/test/basic` }), "uri_mismatch"],
  ["another chain", () => ({ chainId: "eip155:1" }), "chain_id"],
  ["another chain of ours", () => ({ chainId: "eip155:84532" }), "chain_id"],
  ["a nonce that was not issued", () => ({ nonce: "a".repeat(68) }), "nonce"],
  ["a nonce with another proof", ({ nonce }) => ({ nonce: flipped(nonce) }), "nonce"],
  ["a nonce in capitals", ({ nonce }) => ({ nonce: nonce.toUpperCase() }), "nonce"],
  ["a nonce with an earlier time", ({ nonce }) => ({ nonce: `00${nonce.slice(2)}` }), "nonce"],
  ["a later issuedAt", ({ issuedAt }) => ({ issuedAt: later(issuedAt, 10 * MINUTES) }), "issued_at"],
  ["an earlier issuedAt", ({ issuedAt }) => ({ issuedAt: later(issuedAt, -1) }), "issued_at"],
  ["a later end", ({ issuedAt }) => ({ expirationTime: later(issuedAt, 600 * MINUTES) }), "expiration_time"],
  ["no end", () => ({ expirationTime: undefined }), "expiration_time"],
  ["a beginning", ({ issuedAt }) => ({ notBefore: issuedAt }), "not_before"],
  ["a request id", () => ({ requestId: "one" }), "request_id"],
  ["another statement", () => ({ statement: "Take part in a raffle" }), "statement"],
  ["no statement", () => ({ statement: undefined }), "statement"],
  ["more resources", ({ uri }) => ({ resources: [uri, "https://evil.example/"] }), "resources"],
  ["no resources", () => ({ resources: undefined }), "resources"],
];

/** The victim signs one text, and another one is claimed. */
const misquoted =
  (change: Partial<SignInChallenge>): Make =>
  async ({ challenge, victim }) => {
    const { signature } = await signed(victim, { ...challenge, ...change } as SignInChallenge);
    return { ...challenge, address: victim.address, signature };
  };

/** The victim signs the correct text, and its signature is sent in a form that Circle's USDC does not accept either. */
const rewritten =
  (change: (signature: Hex) => string): Make =>
  async ({ challenge, victim }) => {
    const { signature, ...rest } = await signed(victim, challenge);
    return { ...rest, signature: change(signature as Hex) };
  };

/** The victim signs the text with an invisible change. */
const respelled =
  (change: (text: string) => string): Make =>
  async ({ challenge, victim }) => {
    const message = change(createSIWxMessage(challenge, victim.address));
    return { ...challenge, address: victim.address, signature: await victim.signMessage({ message }) };
  };

const FORGED: readonly (readonly [string, Make])[] = [
  [
    "the victim's address and the attacker's signature",
    async ({ challenge, victim, self }) => ({ ...(await signed(self, challenge)), address: victim.address }),
  ],
  [
    "the victim's text and the attacker's signature",
    async ({ challenge, victim: { address }, self }) => {
      const signature = await self.signMessage({ message: createSIWxMessage(challenge, address) });
      return { ...challenge, address, signature };
    },
  ],
  ["what the victim signed for another domain", misquoted({ domain: "evil.example", uri: "https://evil.example/" })],
  ["what the victim signed for another chain", misquoted({ chainId: "eip155:1" })],
  ["what the victim signed with another nonce", misquoted({ nonce: "b".repeat(68) })],
  [
    "a signature of zeros",
    async ({ challenge, victim }) => ({ ...challenge, address: victim.address, signature: `0x${"00".repeat(65)}` }),
  ],
  ["the victim's signature with its s in the upper half", rewritten(highS)],
  ["the victim's signature and one more byte", rewritten((one) => `${one}00`)],
  ["what the victim signed with Windows line endings", respelled((text) => text.replaceAll("\n", "\r\n"))],
  ["what the victim signed with one more line", respelled((text) => `${text}\n`)],
  [
    "what the victim signed with its address in lower case",
    respelled((text) => text.replace(/0x[0-9a-fA-F]{40}/, (one) => one.toLowerCase())),
  ],
  [
    "the hash of the text, signed as a message",
    async ({ challenge, victim }) => {
      const raw = hashMessage(createSIWxMessage(challenge, victim.address));
      return { ...challenge, address: victim.address, signature: await victim.signMessage({ message: { raw } }) };
    },
  ],
  [
    "the victim's signature in a wrapper without a factory (ERC-6492)",
    async ({ challenge, victim }) => {
      const { signature, ...rest } = await signed(victim, challenge);
      return { ...rest, signature: `${signature}${"6492".repeat(16)}` };
    },
  ],
];
