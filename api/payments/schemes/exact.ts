import type { PaymentRequirements } from "@x402/core/types";
import { getAddress } from "viem";
import { z } from "zod";
import { authorizationDigest } from "../../platform/chain/authorization.ts";
import type { Authorization, Chain, Head } from "../../platform/chain/view.ts";
import type { Terms } from "../../platform/http/route.ts";
import { formatUsd } from "../../platform/money.ts";
import { NETWORKS, type Network } from "../../platform/networks.ts";
import type { Lease } from "../../platform/relayer/sender.ts";
import { type Address, type Hex, parseAddress } from "../../platform/wallet.ts";
import { lookFor } from "../commands.ts";
import type { Refusal, RefusedFor } from "../refusal.ts";
import type { ClaimedTerms, Payload, PresentedPayment, Scheme, SchemeRules, Submission } from "../scheme.ts";

/** The scheme's error codes (x402, scheme_exact_evm), without their common prefix. */
type ExactCode =
  | "scheme"
  | "network_mismatch"
  | "recipient_mismatch"
  | "payload_authorization_value_mismatch"
  | "payload_authorization_valid_after"
  | "payload_authorization_valid_before"
  | "signature"
  | "nonce_already_used"
  | "transaction_simulation_failed";

const CODES = {
  early: "invalid_exact_evm_payload_authorization_valid_after",
  expired: "invalid_exact_evm_payload_authorization_valid_before",
  "valid for too long": "invalid_exact_evm_payload_authorization_valid_before",
  unsigned: "invalid_exact_evm_signature",
  undeployed: "invalid_exact_evm_signature",
  "short of funds": "insufficient_funds",
  consumed: "invalid_exact_evm_nonce_already_used",
} as const satisfies Record<RefusedFor, string>;

type Checked = Pick<PresentedPayment, "version" | "authorization" | "claimed">;

const coded = (code: ExactCode, error: string): Refusal => ({ code: `invalid_exact_evm_${code}`, error });

/** Explains in one sentence what is wrong with a payment's signed terms; null if they are correct. */
function misfit(payment: Checked, terms: Terms): Refusal | null {
  const { authorization: signed, claimed } = payment;
  const contradiction = claimError(claimed, payment, terms);
  if (contradiction !== null) return contradiction;
  if (signed.to !== terms.payTo)
    return coded("recipient_mismatch", `The authorization pays ${signed.to}; it must pay ${terms.payTo}.`);
  if (signed.from === terms.payTo)
    return coded("recipient_mismatch", "The payer is the receiving address itself; pay from a different wallet.");
  if (signed.value !== terms.value) {
    const { money } = NETWORKS[terms.network];
    const error = `The authorization is for ${signed.value} atomic units (${formatUsd(signed.value)} ${money}); it must be for exactly ${terms.value} (${formatUsd(terms.value)} ${money}).`;
    return coded("payload_authorization_value_mismatch", error);
  }
  return null;
}

/** Checks the client's claims. Fields that it omits are ignored; the others must match what it signed. */
function claimError(claimed: ClaimedTerms, { version, authorization }: Checked, terms: Terms): Refusal | null {
  const { id, key, usdc } = NETWORKS[terms.network];
  const network = version === "v1" ? key : id;
  if (claimed.scheme !== undefined && claimed.scheme !== "exact")
    return coded("scheme", `The payment claims the scheme ${claimed.scheme}; this route accepts exact.`);
  if (claimed.network !== undefined && claimed.network !== network)
    return coded(
      "network_mismatch",
      `The payment claims the network ${claimed.network}; this route accepts ${network}.`,
    );
  if (claimed.asset !== undefined && parseAddress(claimed.asset) !== usdc.address) {
    const error = `The payment claims the asset ${claimed.asset}; this route accepts USDC at ${usdc.address}.`;
    return { code: "invalid_payment_requirements", error };
  }
  if (claimed.amount !== undefined && claimed.amount !== authorization.value.toString()) {
    const error = `The payment claims ${claimed.amount} atomic units, but the authorization is for ${authorization.value}.`;
    return coded("payload_authorization_value_mismatch", error);
  }
  if (claimed.payTo !== undefined && parseAddress(claimed.payTo) !== authorization.to) {
    const error = `The payment claims to pay ${claimed.payTo}, but the authorization pays ${authorization.to}.`;
    return coded("recipient_mismatch", error);
  }
  return null;
}

const integer = z
  .union([z.string().regex(/^\d{1,78}$/), z.number().int().nonnegative().refine(Number.isSafeInteger)])
  .transform((value) => BigInt(value))
  .refine((value) => value < 2n ** 256n);
const address = z.string().transform((text, context): Address => {
  const parsed = parseAddress(text);
  if (parsed === null) context.addIssue({ code: "custom", message: "expected an address: 0x and 40 hex digits" });
  return parsed ?? "0x";
});
const hex = (pattern: RegExp, expected: string) =>
  z
    .string()
    .regex(pattern, expected)
    .transform((text) => text.toLowerCase() as Hex);

const PAYLOAD = z.object({
  signature: hex(/^0x([0-9a-f]{2}){1,4096}$/i, "expected hex bytes"),
  authorization: z.object({
    from: address,
    to: address,
    value: integer,
    validAfter: integer,
    validBefore: integer,
    nonce: hex(/^0x[0-9a-f]{64}$/i, "expected 32 bytes in hex"),
  }),
});

/** Parses `{signature, authorization}`, the payload of EIP-3009 payments. */
function parsePayload(payload: unknown): Payload | { readonly malformed: string } {
  const parsed = PAYLOAD.safeParse(payload);
  if (parsed.success) return { ...parsed.data, details: null };
  const issue = parsed.error.issues[0];
  return { malformed: `${["payload", ...(issue?.path ?? [])].join(".")}: ${issue?.message ?? "unexpected"}` };
}

/** The requested validity of an authorization. */
export const MAX_TIMEOUT_SECONDS = 120;

/** Returns the `accepts` entry for an `exact` payment in a 402. */
export const requirements = (
  { network, payTo, value }: Terms,
  maxTimeoutSeconds = MAX_TIMEOUT_SECONDS,
): PaymentRequirements => {
  const { usdc } = NETWORKS[network];
  return {
    scheme: "exact",
    network,
    amount: value.toString(),
    asset: getAddress(usdc.address),
    payTo: getAddress(payTo),
    maxTimeoutSeconds,
    extra: { name: usdc.name, version: usdc.version },
  };
};

/** Submits a signed transfer to a facilitator. Its result and its errors decide nothing. */
export interface Settler {
  /** The data by which the facilitator lists routes; absent if it lists none. */
  readonly listsBy?: "extensions";
  submit(payment: Omit<Submission, "details" | "lease"> & { readonly lease?: Lease }): Promise<void>;
  /**
   * Returns our transaction in which the authorization was mined without being used; null if none is known. After such
   * a failure, `submit` sends nothing.
   */
  failed(payment: Pick<Submission, "network" | "authorization">): Promise<Hex | null>;
}

/** Simulates the transfers of one chain. Only its node sees their signatures. */
export interface TransferSimulator {
  /** `refused` is null if the transfer would succeed, else the token's reason. Reads the current head. */
  simulate(
    authorization: Authorization,
    signature: Hex,
  ): Promise<{ readonly refused: Refusal | null; readonly head: Head }>;
}

export interface ExactParts {
  readonly chains: Readonly<Record<Network, Chain>>;
  readonly simulators: Readonly<Record<Network, TransferSimulator>>;
  readonly settler: Settler;
}

/** `exact` on EVM chains: USDC's `transferWithAuthorization` straight to the seller (x402, scheme_exact_evm). */
export const EXACT: SchemeRules = {
  id: "exact",
  versions: ["v1", "v2"],
  requirements: ({ terms, maxTimeoutSeconds }) => requirements(terms, maxTimeoutSeconds),
  parse: parsePayload,
  digest: ({ authorization }, network) => authorizationDigest(authorization, NETWORKS[network]),
  misfit,
  worded: (refusedFor, error) => ({ code: CODES[refusedFor], error }),
};

export const createExact = ({ chains, simulators, settler }: ExactParts): Scheme => ({
  ...EXACT,
  simulate: ({ network, authorization, signature }) => simulators[network].simulate(authorization, signature),
  ...(settler.listsBy && { listsBy: settler.listsBy }),
  submit: (payment) => settler.submit(payment),
  look(network, expected) {
    const { payer: from, payTo: to, value, validAfter, validBefore, nonce } = expected;
    const authorization = { from, to, value, validAfter, validBefore, nonce };
    return lookFor(chains[network], expected, () => settler.failed({ network, authorization }));
  },
});
