import { mismatch, NOT_EIP_3009, wrongFactory } from "../../../packages/escrow/src/auth-capture/check.ts";
import { parseAuthCapture, termsOf } from "../../../packages/escrow/src/auth-capture/payload.ts";
import { type RefusalCode, refusal, revertCode } from "../../../packages/escrow/src/auth-capture/refusal.ts";
import { AUTH_CAPTURE, requirements } from "../../../packages/escrow/src/auth-capture/terms.ts";
import { isWrapped } from "../../../packages/escrow/src/signature-forms.ts";
import { type Address, parseAddress } from "../../platform/wallet.ts";
import type { Refusal, RefusedFor } from "../refusal.ts";
import type { ClaimedTerms, Payload, Scheme } from "../scheme.ts";
import {
  asDetails,
  current,
  digestOf,
  type EscrowContract,
  type EscrowedParts,
  escrowOffer,
  heldBy,
  lowerCased,
  paymentInfoOf,
} from "./escrowed.ts";

export interface AuthCaptureParts extends EscrowedParts {
  /** The only contracts that may deploy a payer's wallet (ERC-6492). */
  readonly factories: readonly Address[];
  /** Whether a wallet that may not have code yet signed. Its factory must be one of `factories`. */
  readonly isSignedByWrapped: NonNullable<Scheme["isSignedOtherwise"]>;
}

/**
 * Creates x402's `auth-capture`, which stock clients pay. base/commerce-payments holds the USDC, and only our operator
 * decides where it goes. The payload has no terms; they are rebuilt from our own and checked against the signed nonce.
 */
export function createAuthCapture(parts: AuthCaptureParts): Scheme {
  const { isSignedByWrapped } = parts;
  const rules = authCaptureRules(parts);
  const { deploys } = rules;
  return {
    ...heldBy(rules, parts),
    isSignedOtherwise: async (signed, asker) => deploys(signed.signature) && isSignedByWrapped(signed, asker),
  };
}

const authCaptureRules = ({ contracts, factories }: AuthCaptureParts) =>
  ({
    id: AUTH_CAPTURE,
    versions: ["v2"],
    namesAmount: true,
    deploys: (signature) => isWrapped(signature) && wrongFactory(signature, factories) === null,
    requirements: ({ terms }, at) => requirements(escrowOffer(current(contracts, AUTH_CAPTURE), terms), at.getTime()),
    parse: (payload, claimed) => parse(contracts, payload, claimed),
    digest: digestOf(contracts, AUTH_CAPTURE),
    misfit({ authorization, signature, details, claimed }, terms, at) {
      const { salt } = paymentInfoOf(details);
      const checked = {
        payment: { authorization, signature, salt, accepted: claimed },
        offer: escrowOffer(current(contracts, AUTH_CAPTURE), terms),
        nowMs: at.getTime(),
      };
      return coded(mismatch(checked) ?? wrongFactory(signature, factories));
    },
    worded: (refusedFor, why) => coded(refusal(CODES[refusedFor], why)),
    refused: ({ name, text }) =>
      coded(
        name === null
          ? refusal("simulation_failed", text)
          : refusal(revertCode({ name, text }), `the hold would revert with ${text}. Nothing was charged.`),
      ),
  }) satisfies Parameters<typeof heldBy>[0];

/** Splits a text of the scheme, which begins with its code. */
function coded(error: string): Refusal;
function coded(error: string | null): Refusal | null;
function coded(error: string | null): Refusal | null {
  const [code] = error?.split(":", 1) ?? [];
  return error === null || code === undefined ? null : { code, error };
}

const CODES = {
  early: "authorization_not_yet_valid",
  "valid for too long": "deadline_ordering",
  expired: "authorization_expired",
  unsigned: "signature",
  undeployed: "erc6492_factory_not_allowed",
  "short of funds": "insufficient_balance",
  consumed: "payment_already_collected",
} as const satisfies Record<RefusedFor, RefusalCode>;

/** Rebuilds the terms from the client's claims; `mismatch` compares them with the offer. */
function parse(
  contracts: readonly EscrowContract[],
  payload: unknown,
  claimed: ClaimedTerms,
): Payload | { readonly malformed: string } {
  const read = parseAuthCapture(payload);
  if ("malformed" in read) return read;
  const { authorization } = read;
  if (authorization === null) return { malformed: NOT_EIP_3009 };
  const payTo = parseAddress(claimed.payTo);
  if (payTo === null) return unreadable("accepted.payTo is not an address");
  if (authorization.value >= 2n ** 120n) return unreadable("authorization.value does not fit into 120 bits");
  if (authorization.validBefore >= 2n ** 48n) return unreadable("authorization.validBefore does not fit into 48 bits");
  const contract = contractIn(contracts, claimed);
  const offer = escrowOffer(contract, { network: contract.network, payTo, value: authorization.value });
  const info = termsOf({ ...read, authorization, accepted: claimed }, offer);
  return { authorization: lowerCased(authorization), signature: read.signature, details: asDetails(info) };
}

const unreadable = (why: string) => ({ malformed: refusal("payload_format", why) });

/** Returns the operator that this client was offered, which may have been replaced since. */
function contractIn(contracts: readonly EscrowContract[], { extra }: ClaimedTerms): EscrowContract {
  const { captureAuthorizer } = (extra ?? {}) as { readonly captureAuthorizer?: unknown };
  const operator = parseAddress(captureAuthorizer);
  const offered = contracts.find(({ scheme, address }) => scheme === AUTH_CAPTURE && address === operator);
  return offered ?? current(contracts, AUTH_CAPTURE);
}
