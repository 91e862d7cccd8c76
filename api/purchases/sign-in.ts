import { createHmac, timingSafeEqual } from "node:crypto";
import { type Address as ChecksummedAddress, getAddress } from "viem";
import { createSiweMessage } from "viem/siwe";
import { z } from "zod";
import { decodeJson } from "../../packages/escrow/src/envelope.ts";
import { MAX_HEADER_BYTES } from "../payments/index.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import { type Address, type Hex, parseAddress } from "../platform/wallet.ts";

/** The name of x402's extension, in lower case, and of the header that answers it. */
export const SIGN_IN = "sign-in-with-x";
export const SIGN_IN_HEADER = "SIGN-IN-WITH-X";

/** How long a challenge can be answered. */
const SIGN_IN_MINUTES = 5;
/** How far one process may be ahead of another. */
const MOST_AHEAD_MS = 60_000;

/** What a wallet shows to its owner. */
const STATEMENT = "Show what this wallet has bought here, with the answers it got. This pays for nothing.";

/** What is to be signed, without the wallet and its chain (EIP-4361). */
export interface SignInInfo {
  readonly domain: string;
  readonly uri: string;
  readonly version: "1";
  readonly nonce: string;
  readonly issuedAt: string;
  readonly expirationTime: string;
  readonly statement: string;
  readonly resources: readonly [string];
}

/** The challenge of a nonce: everything else follows from it, so nothing else has to be kept. */
export const signInInfo = (uri: string, { nonce, at }: { readonly nonce: string; readonly at: Date }): SignInInfo => ({
  domain: new URL(uri).host,
  uri,
  version: "1",
  nonce,
  issuedAt: at.toISOString(),
  expirationTime: expiryOf(at).toISOString(),
  statement: STATEMENT,
  resources: [uri],
});

const expiryOf = (at: Date): Date => new Date(at.getTime() + SIGN_IN_MINUTES * 60_000);

const optional = z.string().nullish();

/** What the header carries. Members that nobody signs are ignored. */
export const SIGN_IN_PAYLOAD = z.object({
  domain: z.string(),
  address: z.string().regex(/^0x[0-9a-fA-F]{40}$/, "expected 0x and 40 hex digits"),
  statement: optional,
  uri: z.string(),
  version: z.string(),
  chainId: z.string(),
  type: z.literal("eip191"),
  nonce: z.string(),
  issuedAt: z.string(),
  expirationTime: optional,
  notBefore: optional,
  requestId: optional,
  resources: z.array(z.string()).nullish(),
  signature: z.string().regex(/^0x(?:[0-9a-fA-F]{2})+$/, "expected 0x and hex digits"),
});

/** A sign-in as its header carries it; none of it has been checked yet. */
export type SignIn = z.infer<typeof SIGN_IN_PAYLOAD>;

/** Decodes `SIGN-IN-WITH-X`; `malformed` says what is wrong with it. */
export function parseSignIn(header: string): SignIn | { readonly malformed: string } {
  if (header.length > MAX_HEADER_BYTES)
    return { malformed: `${SIGN_IN_HEADER} has ${header.length} bytes; the limit is ${MAX_HEADER_BYTES}.` };
  const decoded = decodeJson(header);
  if ("malformed" in decoded) return { malformed: `${SIGN_IN_HEADER} ${decoded.malformed}.` };
  const { success, data, error } = SIGN_IN_PAYLOAD.safeParse(decoded.value);
  if (success) return data;
  const [issue] = error.issues;
  const where = issue?.path.join(".") || "payload";
  return { malformed: `${SIGN_IN_HEADER} is not a signed sign-in: ${where}: ${issue?.message ?? "unexpected"}.` };
}

/** Why a sign-in is refused: a code of the extension and a sentence for people. */
export interface Refusal {
  readonly code: `invalid_siwx_${string}`;
  readonly why: string;
}

/** What is signed in to, on which network, and how a nonce shows when it was issued. */
export interface Expected {
  readonly uri: string;
  readonly network: Network;
  readonly issuedAt: (nonce: string) => Date | null;
}

/**
 * Checks everything but the signature and whether the nonce was used. Every member has to be the challenge's own, so the
 * text that counts as signed is ours but for the wallet's address.
 */
export function checkSignIn(given: SignIn, { uri, network, issuedAt }: Expected, now: Date): Refusal | null {
  const { host } = new URL(uri);
  if (given.domain !== host) return refused("domain_mismatch", `The domain has to be ${host}.`);
  if (given.uri !== uri) return refused("uri_mismatch", `The uri has to be ${uri}.`);
  if (given.chainId !== network) return refused("chain_id", `The chainId has to be ${network}.`);
  const at = issuedAt(given.nonce);
  if (at === null) return refused("nonce", "The nonce is not one that this service issued for this network.");
  const changed = changedMember(given, signInInfo(uri, { nonce: given.nonce, at }));
  if (changed !== null) return refused(...changed);
  if (at.getTime() > now.getTime() + MOST_AHEAD_MS)
    return refused("issued_at_in_future", "The challenge was issued in the future.");
  if (now.getTime() >= expiryOf(at).getTime())
    return refused("expired", `A challenge can be answered for ${SIGN_IN_MINUTES} minutes.`);
  return null;
}

export const refused = (code: string, why: string): Refusal => ({ code: `invalid_siwx_${code}`, why });

function changedMember(given: SignIn, own: SignInInfo): readonly [string, string] | null {
  const differs = (name: "version" | "statement" | "issuedAt" | "expirationTime") => given[name] !== own[name];
  const asIssued = (name: string) => `${name} has to be as in the challenge.`;
  if (differs("version")) return ["version", asIssued("version")];
  if (differs("issuedAt")) return ["issued_at", asIssued("issuedAt")];
  if (differs("expirationTime")) return ["expiration_time", asIssued("expirationTime")];
  if (differs("statement")) return ["statement", asIssued("statement")];
  if (JSON.stringify(given.resources ?? []) !== JSON.stringify(own.resources))
    return ["resources", asIssued("resources")];
  if ((given.notBefore ?? null) !== null) return ["not_before", "The challenge has no notBefore."];
  if ((given.requestId ?? null) !== null) return ["request_id", "The challenge has no requestId."];
  return null;
}

/** Who signs in, the text that has to have been signed, and the signature. */
export interface SignedText {
  readonly payer: Address;
  readonly text: string;
  readonly signature: Hex;
}

/** The text of a sign-in that has been checked (EIP-4361): the address as EIP-55 writes it, in whatever case it came. */
export function signedText({ address, signature, ...given }: SignIn, { uri, network, issuedAt }: Expected): SignedText {
  const payer = parseAddress(address);
  const at = issuedAt(given.nonce);
  if (payer === null || at === null) throw new Error("the sign-in has not been checked");
  const { issuedAt: _, expirationTime: __, resources, ...info } = signInInfo(uri, { nonce: given.nonce, at });
  return {
    payer,
    signature: signature as Hex,
    text: createSiweMessage({
      ...info,
      address: getAddress(payer) as ChecksummedAddress,
      chainId: NETWORKS[network].chainId,
      issuedAt: at,
      expirationTime: expiryOf(at),
      resources: [...resources],
    }),
  };
}

/** Of a nonce in bytes: when it was issued (milliseconds since 1970), chance, and our proof of both. */
const TIME = 6;
const CHANCE = 12;
const PROOF = 16;
const FORM = new RegExp(`^[0-9a-f]{${2 * (TIME + CHANCE + PROOF)}}$`);

/** How many bytes of chance a nonce needs. */
export const NONCE_CHANCE_BYTES = CHANCE;

/**
 * Nonces that prove themselves: whatever number of challenges is asked for, nothing is stored before one comes back
 * signed. Every process with the same secret takes those of the others.
 */
export interface Nonces {
  readonly issue: (network: Network, at: Date, chance: Uint8Array) => string;
  /** When it was issued; null if it is not one of ours for this network. */
  readonly issuedAt: (network: Network, nonce: string) => Date | null;
}

/**
 * @param secrets known to the processes of this service alone; the first proves new nonces, and each those that it proved
 * @param uri what is signed in to: a nonce for another address of the service proves nothing
 */
export function createNonces(secrets: readonly [Uint8Array, ...Uint8Array[]], uri: string): Nonces {
  const prove = (network: Network, body: Buffer, secret = secrets[0]): Buffer =>
    createHmac("sha256", secret).update(`sign-in-with-x|${uri}|${network}|`).update(body).digest().subarray(0, PROOF);
  return {
    issue(network, at, chance) {
      const body = Buffer.alloc(TIME + CHANCE);
      body.writeUIntBE(at.getTime(), 0, TIME);
      body.set(chance.subarray(0, CHANCE), TIME);
      return Buffer.concat([body, prove(network, body)]).toString("hex");
    },
    issuedAt(network, nonce) {
      if (!FORM.test(nonce)) return null;
      const bytes = Buffer.from(nonce, "hex");
      const body = bytes.subarray(0, TIME + CHANCE);
      const proof = bytes.subarray(TIME + CHANCE);
      if (!secrets.some((secret) => timingSafeEqual(prove(network, body, secret), proof))) return null;
      return new Date(body.readUIntBE(0, TIME));
    },
  };
}
