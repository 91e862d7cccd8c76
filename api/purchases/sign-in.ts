import { createHmac, timingSafeEqual } from "node:crypto";
import { getAddress } from "viem";
import { createSiweMessage } from "viem/siwe";
import { z } from "zod";
import { decodeJson } from "../../packages/escrow/src/envelope.ts";
import { MAX_HEADER_BYTES } from "../payments/index.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import type { Address, Hex } from "../platform/wallet.ts";

/** The name of x402's extension, and of the header with its response. */
export const SIGN_IN = "sign-in-with-x";
export const SIGN_IN_HEADER = "SIGN-IN-WITH-X";

/** A challenge is valid for this time. */
const SIGN_IN_MINUTES = 5;
/** The maximum difference between the clocks of two processes. */
const MOST_AHEAD_MS = 60_000;

/** The statement that a wallet shows to its owner. */
const STATEMENT = "Show what this wallet has bought here, with the answers it got. This pays for nothing.";

/** The challenge to sign, without the wallet and its chain (EIP-4361). */
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

/** Returns the challenge of a nonce. Every other member follows from the nonce, so challenges are not stored. */
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

/** The payload of the header. Members that are not signed are ignored. */
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

/** An unchecked sign-in. */
export type SignIn = z.infer<typeof SIGN_IN_PAYLOAD>;

/** Decodes `SIGN-IN-WITH-X`. `malformed` describes the fault. */
export function parseSignIn(header: string): SignIn | { readonly malformed: string } {
  if (header.length > MAX_HEADER_BYTES)
    return { malformed: `${SIGN_IN_HEADER} has ${header.length} bytes; the limit is ${MAX_HEADER_BYTES}.` };
  const decoded = decodeJson(header);
  if ("malformed" in decoded) return { malformed: `${SIGN_IN_HEADER} ${decoded.malformed}.` };
  const { success, data, error } = SIGN_IN_PAYLOAD.safeParse(decoded.value);
  if (success) return data;
  const [issue] = error.issues;
  const where = issue?.path.join(".") || "payload";
  return { malformed: `${SIGN_IN_HEADER} is not a valid sign-in: ${where}: ${issue?.message ?? "unexpected"}.` };
}

/** The reason for refusing a sign-in: a code of the extension, and a sentence for people. */
export interface Refusal {
  readonly code: `invalid_siwx_${string}`;
  readonly why: string;
}

/** The expected URL and network, and the function that returns when a nonce was issued. */
export interface Expected {
  readonly uri: string;
  readonly network: Network;
  readonly issuedAt: (nonce: string) => Date | null;
}

/**
 * Checks everything except the signature and whether the nonce was used. Every member must equal the challenge's, so only
 * the wallet's address in the signed text is the client's choice.
 */
export function checkSignIn(given: SignIn, { uri, network, issuedAt }: Expected, now: Date): SignedText | Refusal {
  const { host } = new URL(uri);
  if (given.domain !== host) return refused("domain_mismatch", `The domain must be ${host}.`);
  if (given.uri !== uri) return refused("uri_mismatch", `The uri must be ${uri}.`);
  if (given.chainId !== network) return refused("chain_id", `The chainId must be ${network}.`);
  const at = issuedAt(given.nonce);
  if (at === null) return refused("nonce", "This service did not issue the nonce for this network.");
  const own = signInInfo(uri, { nonce: given.nonce, at });
  const changed = changedMember(given, own);
  if (changed !== null) return refused(...changed);
  if (at.getTime() > now.getTime() + MOST_AHEAD_MS)
    return refused("issued_at_in_future", "The challenge was issued in the future.");
  if (now.getTime() >= expiryOf(at).getTime())
    return refused("expired", `A challenge expires after ${SIGN_IN_MINUTES} minutes.`);
  return signedText(given, own, { network, at });
}

export const refused = (code: string, why: string): Refusal => ({ code: `invalid_siwx_${code}`, why });

function changedMember(given: SignIn, own: SignInInfo): readonly [string, string] | null {
  const asIssued = (name: string) => `${name} must be the same as in the challenge.`;
  for (const [name, code] of SIGNED_MEMBERS) if (given[name] !== own[name]) return [code, asIssued(name)];
  if (JSON.stringify(given.resources ?? []) !== JSON.stringify(own.resources))
    return ["resources", asIssued("resources")];
  if ((given.notBefore ?? null) !== null) return ["not_before", "The challenge has no notBefore."];
  if ((given.requestId ?? null) !== null) return ["request_id", "The challenge has no requestId."];
  return null;
}

const SIGNED_MEMBERS = [
  ["version", "version"],
  ["issuedAt", "issued_at"],
  ["expirationTime", "expiration_time"],
  ["statement", "statement"],
] as const;

/** The wallet that signs in, the text that it must have signed, and the signature. */
export interface SignedText {
  readonly payer: Address;
  readonly text: string;
  readonly signature: Hex;
}

/** Returns the text of a sign-in (EIP-4361), with the address in its EIP-55 checksum form. */
function signedText(
  { address, signature }: SignIn,
  { issuedAt: _, expirationTime: __, resources, ...info }: SignInInfo,
  { network, at }: { readonly network: Network; readonly at: Date },
): SignedText {
  const payer = address.toLowerCase() as Address;
  return {
    payer,
    signature: signature as Hex,
    text: createSiweMessage({
      ...info,
      address: getAddress(payer),
      chainId: NETWORKS[network].chainId,
      issuedAt: at,
      expirationTime: expiryOf(at),
      resources: [...resources],
    }),
  };
}

/** The bytes of a nonce: the time of issue (milliseconds since 1970), random bytes, and a MAC of both. */
const TIME = 6;
const CHANCE = 12;
const PROOF = 16;
const FORM = new RegExp(`^[0-9a-f]{${2 * (TIME + CHANCE + PROOF)}}$`);

export type Nonces = ReturnType<typeof createNonces>;

/**
 * Creates self-authenticating nonces. Nothing is stored until a challenge comes back signed. Processes with the same
 * secret accept each other's nonces.
 * @param secrets known only to the processes of this service; the first authenticates new nonces, and all verify nonces
 * @param uri the URL that a wallet signs in to; a nonce for another URL of the service is not valid
 * @param random returns this many random bytes
 */
export function createNonces(
  secrets: readonly [Uint8Array, ...Uint8Array[]],
  uri: string,
  random: (count: number) => Uint8Array,
) {
  const prove = (network: Network, body: Buffer, secret = secrets[0]): Buffer =>
    createHmac("sha256", secret).update(`sign-in-with-x|${uri}|${network}|`).update(body).digest().subarray(0, PROOF);
  return {
    issue(network: Network, at: Date): string {
      const body = Buffer.concat([Buffer.alloc(TIME), random(CHANCE)]);
      body.writeUIntBE(at.getTime(), 0, TIME);
      return Buffer.concat([body, prove(network, body)]).toString("hex");
    },
    /** Returns the time of issue, or null if the service did not issue the nonce for this network. */
    issuedAt(network: Network, nonce: string): Date | null {
      if (!FORM.test(nonce)) return null;
      const bytes = Buffer.from(nonce, "hex");
      const body = bytes.subarray(0, TIME + CHANCE);
      const proof = bytes.subarray(TIME + CHANCE);
      if (!secrets.some((secret) => timingSafeEqual(prove(network, body, secret), proof))) return null;
      return new Date(body.readUIntBE(0, TIME));
    },
  };
}
