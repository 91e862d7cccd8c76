import { createHash } from "node:crypto";
import { hashTypedData } from "viem";
import { z } from "zod";
import { canonical } from "../../../packages/escrow/src/canonical.ts";
import { NETWORKS, type NetworkFacts } from "../../kernel/networks.ts";
import type { Address, Hex } from "../../kernel/wallet.ts";
import { bytes32, hex } from "../delivery.ts";
import type { Hold } from "../payment.ts";

const MAX_HEADER = 1_024;
const SIGNATURE = hex(/^0x([0-9a-f]{2}){1,4096}$/i, "a signature in hex");

/** Taken as it is: the record shows the claim, and its hash is that of the claim as it was sent. */
const lowerCase = (pattern: RegExp, expected: string) =>
  z.string().regex(pattern, `expected ${expected}`) as unknown as z.ZodType<Hex>;

/** Another delivery of the payment that the merchant signed: the one that the buyer got with the response. */
const SIGNED_DELIVERY = z.strictObject({
  status: z.number().int().min(100).max(599),
  body_sha256: lowerCase(/^0x[0-9a-f]{64}$/, "32 bytes in hex, lower case"),
  content_type: z.string().max(MAX_HEADER),
  content_encoding: z.string().max(MAX_HEADER),
  signature: lowerCase(/^0x([0-9a-f]{2}){1,4096}$/, "a signature in hex, lower case"),
});

/** What a buyer says. It names a ground and no conditions of its own: those are the offer's. */
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

/** SHA-256 of the claim's canonical JSON (RFC 8785), as submitted. */
export const claimSha256 = (claim: unknown): Hex => `0x${createHash("sha256").update(canonical(claim)).digest("hex")}`;

/** What a payer signs to contest, under the domain of one escrow contract (EIP-712). */
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

/** The digest that the payer signs. */
export const contestDigest = ({ network, contract, id }: Pick<Hold, "network" | "contract" | "id">, claim: Hex): Hex =>
  hashTypedData({
    domain: contestDomain(NETWORKS[network], contract),
    ...CONTEST_TYPES,
    message: { paymentId: id, claimSha256: claim },
  });
