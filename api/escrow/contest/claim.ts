import { hashTypedData } from "viem";
import { z } from "zod";
import { canonical } from "../../../packages/escrow/src/canonical.ts";
import { NETWORKS, type NetworkFacts } from "../../platform/networks.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import { bytes32, type HashedDelivery, SIGNATURE, sha256, textHash } from "../delivery.ts";
import type { Hold } from "../payment.ts";

/**
 * Only lowercase is accepted, because the record shows the claim unchanged, and its hash is the hash of the claim as it
 * was sent.
 */
const lowerCase = (pattern: RegExp, expected: string) =>
  z.string().regex(pattern, `expected ${expected}`) as unknown as z.ZodType<Hex>;

const digest = lowerCase(/^0x[0-9a-f]{64}$/, "32 bytes in hex, lower case");
/** A lone surrogate is signed as U+FFFD, and a signed record cannot contain one. */
const text = z.string().transform((given) => given.toWellFormed());
const HEADERS = ["content_type", "content_encoding"] as const;

/**
 * Another delivery of the payment that the merchant signed: the one that the buyer got with the response. Anything that
 * a merchant can sign fits. A header that is too long for a request, or whose bytes are not text, is given by its hash.
 */
const SIGNED_DELIVERY = z
  .strictObject({
    status: z.number().int().min(0).max(65_535),
    body_sha256: digest,
    content_type: text.optional(),
    content_type_keccak256: digest.optional(),
    content_encoding: text.optional(),
    content_encoding_keccak256: digest.optional(),
    // Fits into a response's headers. A longer one would not leave a contract enough gas to check it.
    signature: lowerCase(/^0x([0-9a-f]{2}){0,8192}$/, "a signature in hex, lower case"),
  })
  .superRefine((delivery, context) => {
    for (const header of HEADERS)
      if ((delivery[header] === undefined) === (delivery[`${header}_keccak256`] === undefined))
        context.addIssue({ code: "custom", path: [header], message: `expected ${header} or ${header}_keccak256` });
  });

type ClaimedDelivery = z.infer<typeof SIGNED_DELIVERY>;

/** Returns the delivery of a claim as EIP-712 hashes it. */
export const hashedClaim = (claimed: ClaimedDelivery): HashedDelivery => ({
  status: claimed.status,
  body_sha256: claimed.body_sha256,
  content_type_keccak256: claimed.content_type_keccak256 ?? textHash(claimed.content_type ?? ""),
  content_encoding_keccak256: claimed.content_encoding_keccak256 ?? textHash(claimed.content_encoding ?? ""),
});

/** A buyer's claim. It names a ground but no conditions, because the offer's conditions apply. */
const CONTEST_CLAIM = z.discriminatedUnion("category", [
  z.strictObject({ category: z.literal("expect") }),
  z.strictObject({ category: z.literal("http-delivery") }),
  z.strictObject({ category: z.literal("payload-hash"), delivery: SIGNED_DELIVERY }),
]);

export type ContestClaim = z.infer<typeof CONTEST_CLAIM>;

export const GROUNDS = [
  "expect",
  "http-delivery",
  "payload-hash",
] as const satisfies readonly ContestClaim["category"][];

/** The body of `POST /escrow/contest`. */
export const CONTEST = z.strictObject({ payment_id: bytes32, claim: CONTEST_CLAIM, signature: SIGNATURE });

/** Returns the SHA-256 of the claim's canonical JSON (RFC 8785), as submitted. */
export const claimSha256 = (claim: unknown): Hex => sha256(canonical(claim));

/** The type that a payer signs to contest, under the domain of one escrow contract (EIP-712). */
export const CONTEST_TYPES = {
  primaryType: "Contest",
  types: {
    Contest: [
      { name: "paymentId", type: "bytes32" },
      { name: "claimSha256", type: "bytes32" },
    ],
  },
} as const;

export const contestDomain = ({ chainId }: NetworkFacts, contract: Address) => ({
  name: "Agent Payment Trust Contest",
  version: "1",
  chainId,
  verifyingContract: contract,
});

/** Returns the digest that the payer signs. */
export const contestDigest = ({ network, contract, id }: Pick<Hold, "network" | "contract" | "id">, claim: Hex): Hex =>
  hashTypedData({
    domain: contestDomain(NETWORKS[network], contract),
    ...CONTEST_TYPES,
    message: { paymentId: id, claimSha256: claim },
  });
