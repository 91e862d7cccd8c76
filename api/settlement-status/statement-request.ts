import { z } from "zod";
import type { AuthorizationType } from "../platform/chain/authorization.ts";
import type { Authorization } from "../platform/chain/view.ts";
import { address, bytes32, unixSeconds } from "../platform/http/schema.ts";
import { MAIN_NETWORK } from "../platform/networks.ts";
import { type Hex, isMistyped, parseAddress } from "../platform/wallet.ts";
import { bytes32Of, NETWORK_NAMES, networkNamed, type Question, uint256Of } from "./question.ts";

/** Atomic USDC. SPEC.md sets no price. This is a fifth of a verdict's, because only blocks are fetched. */
export const STATEMENT_PRICE = 50_000n;

const read = <Value>(parse: (text: string) => Value | null, expected: string) =>
  z.string({ error: `expected ${expected}` }).transform((text, issues) => {
    const value = parse(text);
    if (value !== null) return value;
    issues.addIssue({ code: "invalid_format", format: "text", message: `expected ${expected}` });
    return z.NEVER;
  });

const account = read(
  (text) => (isMistyped(text) ? null : parseAddress(text)),
  "an address: 0x and 40 hex digits, in lower case or with the capitals of its EIP-55 checksum",
);
const word = read(bytes32Of, "0x and 64 hex digits");
const whole = read((text) => uint256Of(text)?.toString() ?? null, "a whole number of 256 bits, as text");
/** Circle's contract accepts any bytes, and a contract wallet's signature may be long. */
const signature = read(
  (text) => (/^0x([0-9a-f]{2}){1,4096}$/i.test(text) ? (text.toLowerCase() as Hex) : null),
  "a signature: 0x and at most 4,096 bytes of hex",
);

/** The body of `POST /settlement`. Whole numbers are text, as in x402, so that the journal can store it as JSON. */
export const STATEMENT_REQUEST = z
  .strictObject({
    network: read(networkNamed, NETWORK_NAMES.join(" or ")).optional(),
    authorization: z.strictObject({
      from: account,
      to: account,
      value: whole,
      validAfter: whole,
      validBefore: whole,
      nonce: word,
    }),
    signature: signature.nullish(),
    transaction: word.nullish(),
  })
  .transform(({ network = MAIN_NETWORK, authorization, signature: signed = null, transaction = null }) => ({
    network,
    authorization,
    /** Never store it, because it can move money until the authorization is over. */
    signature: signed,
    transaction,
    /** The EIP-712 type that was signed, or null without a signature. */
    signedAs: null as AuthorizationType | null,
  }));

/** A request for a signed statement. */
export type StatementRequest = z.infer<typeof STATEMENT_REQUEST>;

/** The documented schema of the same body. */
export const STATEMENT_BODY = z.object({
  network: z.enum(NETWORK_NAMES).optional().describe(`CAIP-2 identifier or key. The default is ${MAIN_NETWORK}.`),
  authorization: z.object({
    from: address,
    to: address,
    value: unixSeconds.describe("Atomic units as a decimal string."),
    validAfter: unixSeconds,
    validBefore: unixSeconds,
    nonce: bytes32,
  }),
  signature: z
    .string()
    .optional()
    .describe(
      "The payer's signature over the authorization. With it, the statement is unconditional. It is not stored.",
    ),
  transaction: bytes32
    .optional()
    .describe("A transaction that may have settled it. Needed only for an old authorization."),
});

export const authorizationOf = ({ authorization }: StatementRequest): Authorization => ({
  from: authorization.from,
  to: authorization.to,
  value: BigInt(authorization.value),
  validAfter: BigInt(authorization.validAfter),
  validBefore: BigInt(authorization.validBefore),
  nonce: authorization.nonce,
});

export const questionAbout = (request: StatementRequest): Question => {
  const { network, transaction } = request;
  return { network, transaction, ...authorizationOf(request) };
};

const AUTHORIZATION: StatementRequest["authorization"] = {
  from: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
  to: "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc",
  value: "4321000",
  validAfter: "0",
  validBefore: "1795460747",
  nonce: `0x${"7b".repeat(32)}`,
};

/** The members of a statement that callers read first. */
export const EXAMPLE = {
  input: { authorization: AUTHORIZATION },
  output: {
    type: "SettlementStatement",
    authorization: AUTHORIZATION,
    signature: { verified: false },
    conditional_on: "authorization.validBefore",
    settlement: {
      status: "expired",
      final: true,
      valid_before: AUTHORIZATION.validBefore,
      final_block: { block: 38_500_000, time: "2026-11-25T09:30:00.000Z", hash: `0x${"ab".repeat(32)}` },
    },
  },
};
