import { NETWORKS, type Network } from "../../../platform/networks.ts";
import type { Hex } from "../../../platform/wallet.ts";
import type { Chain } from "../../chain.ts";
import { lookFor } from "../../look.ts";
import type { Authorization, Head, Lease, Scheme, SchemeRules, Submission } from "../../scheme.ts";
import { authorizationDigest } from "./authorization.ts";
import { mismatch } from "./check.ts";
import { parsePayload } from "./header.ts";
import { requirements } from "./terms.ts";

/** Gives a signed transfer to a facilitator. Nothing it says or throws decides anything. */
export interface Settler {
  submit(payment: Omit<Submission, "details" | "lease"> & { readonly lease?: Lease }): Promise<void>;
  /**
   * The transaction of ours in which the authorization was mined without being used; null if none is known. After one,
   * `submit` sends nothing.
   */
  failed(payment: Pick<Submission, "network" | "authorization">): Promise<Hex | null>;
}

/** Simulates the transfers of one chain, and shows their signatures only to its node. */
export interface TransferSimulator {
  /** `refused` is null if the transfer would succeed, else the token's reason. Reads the head afresh. */
  simulate(
    authorization: Authorization,
    signature: Hex,
  ): Promise<{ readonly refused: string | null; readonly head: Head }>;
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
  mismatch,
};

export const createExact = ({ chains, simulators, settler }: ExactParts): Scheme => ({
  ...EXACT,
  simulate: ({ network, authorization, signature }) => simulators[network].simulate(authorization, signature),
  submit: (payment) => settler.submit(payment),
  look(network, expected) {
    const { payer: from, payTo: to, value, validAfter, validBefore, nonce } = expected;
    const authorization = { from, to, value, validAfter, validBefore, nonce };
    return lookFor(chains[network], expected, () => settler.failed({ network, authorization }));
  },
});
