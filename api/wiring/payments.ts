import { createHolds } from "../adapters/chain/holds.ts";
import type { Relayer } from "../adapters/chain/relayer/relayer.ts";
import type { CostCeiling } from "../adapters/chain/simulation.ts";
import { ESCROW_NETWORK } from "../escrow/payment.ts";
import type { EscrowContract } from "../payments/commerce/escrow-contract.ts";
import { createCommerce } from "../payments/commerce/scheme.ts";
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
}

/** The payment schemes the service accepts, by name. */
export function wireSchemes({
  chains,
  simulators,
  settler,
  contracts,
  arbiter,
  ceiling,
}: PaymentWires): ReadonlyMap<string, Scheme> {
  const holds = createHolds({ client: chains[ESCROW_NETWORK].client, relayer: arbiter, ceiling });
  const schemes = [createExact({ chains, simulators, settler }), createCommerce({ contracts, chains, holds })];
  return new Map(schemes.map((scheme) => [scheme.id, scheme]));
}
