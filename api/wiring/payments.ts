import { createHolds } from "../adapters/chain/holds.ts";
import type { Relayer } from "../adapters/chain/relayer/relayer.ts";
import type { CostCeiling } from "../adapters/chain/simulation.ts";
import { isSignedByWrapped } from "../adapters/chain/wrapped-signature.ts";
import { ESCROW_NETWORK } from "../escrow/payment.ts";
import type { Address } from "../kernel/wallet.ts";
import { createAuthCapture } from "../payments/auth-capture/scheme.ts";
import { createCommerce } from "../payments/commerce/scheme.ts";
import type { EscrowContract } from "../payments/escrowed/contract.ts";
import { createExact, type Settler } from "../payments/exact/scheme.ts";
import type { Scheme } from "../payments/scheme.ts";
import type { wireChains } from "./chains.ts";

export interface PaymentWires {
  readonly chains: ReturnType<typeof wireChains>["chains"];
  readonly simulators: ReturnType<typeof wireChains>["simulators"];
  readonly settler: Settler;
  readonly contracts: readonly EscrowContract[];
  /** Sends holds; null if there is no escrow contract. */
  readonly arbiter: Relayer | null;
  readonly ceiling: CostCeiling | null;
  /** What may deploy a payer's wallet (ERC-6492). */
  readonly factories: readonly Address[];
}

/** The payment schemes the service accepts, by name. */
export function wireSchemes({
  chains,
  simulators,
  settler,
  contracts,
  arbiter,
  ceiling,
  factories,
}: PaymentWires): ReadonlyMap<string, Scheme> {
  const holds = createHolds({ client: chains[ESCROW_NETWORK].client, relayer: arbiter, ceiling });
  const escrowed = { contracts, chains, holds };
  const schemes = [
    createExact({ chains, simulators, settler }),
    createAuthCapture({
      ...escrowed,
      factories,
      isSignedByWrapped: ({ network, ...signed }) => isSignedByWrapped(chains[network].client, signed),
    }),
    createCommerce(escrowed),
  ];
  return new Map(schemes.map((scheme) => [scheme.id, scheme]));
}
