import { NETWORKS, type Network } from "../../kernel/networks.ts";
import type { Hex } from "../../kernel/wallet.ts";
import type { Chain } from "../chain.ts";
import type { Authorization, Head, Scheme, SchemeRules, Submission } from "../scheme.ts";
import { authorizationDigest } from "./authorization.ts";
import { mismatch } from "./check.ts";
import { parsePayload } from "./header.ts";
import { requirements } from "./terms.ts";

/** Gives a signed transfer to a facilitator. Nothing it says or throws decides anything. */
export interface Settler {
  submit(payment: Omit<Submission, "details">): Promise<void>;
}

/** Simulates transfers on one chain, and shows their signatures only to its node. */
export interface TransferSimulator {
  /** `refused` is null if the transfer would succeed, else the token's reason. Reads the head afresh. */
  simulate(
    authorization: Authorization,
    signature: Hex,
  ): Promise<{ readonly refused: string | null; readonly head: Head }>;
}

export interface ExactParts {
  readonly chains: Readonly<Record<Network, Chain & TransferSimulator>>;
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

export const createExact = ({ chains, settler }: ExactParts): Scheme => ({
  ...EXACT,
  simulate: ({ network, authorization, signature }) => chains[network].simulate(authorization, signature),
  submit: (payment) => settler.submit(payment),
  look: (network, expected) => chains[network].look(expected),
});
