import type { Logger } from "pino";
import type { PublicClient } from "viem";
import type { BatchPolicy } from "./settle/batch-queue.ts";
import { createBatching } from "./settle/batching.ts";
import { createHolds } from "./settle/holds.ts";
import type { Relayer } from "../platform/relayer/relayer.ts";
import { holdsOf } from "./settle/shared-holds.ts";
import type { CostCeiling } from "./settle/simulation.ts";
import { ESCROW_NETWORK } from "../escrow/payment.ts";
import { NETWORKS } from "../platform/networks.ts";
import type { Address } from "../platform/wallet.ts";
import type { Meter } from "../platform/metrics/meter.ts";
import { createAuthCapture } from "./schemes/auth-capture/scheme.ts";
import { createCommerce } from "./schemes/commerce/scheme.ts";
import type { EscrowContract } from "./schemes/escrowed/contract.ts";
import { createExact, type Settler } from "./schemes/exact/scheme.ts";
import type { Scheme } from "./scheme.ts";
import type { wireChains } from "./chains-wiring.ts";

export interface PaymentWires {
  readonly chains: ReturnType<typeof wireChains>["chains"];
  readonly simulators: ReturnType<typeof wireChains>["simulators"];
  readonly settler: Settler;
  readonly contracts: readonly EscrowContract[];
  /** Sends holds; null if there is no escrow contract. */
  readonly arbiter: Relayer | null;
  readonly ceiling: CostCeiling | null;
  readonly sending: Sending;
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
  sending,
}: PaymentWires): ReadonlyMap<string, Scheme> {
  const { client } = chains[ESCROW_NETWORK];
  const batchings = new Map(
    contracts.flatMap(({ address }) =>
      arbiter === null ? [] : [[address, batchingOf(address, { client, relayer: arbiter, ...sending })] as const],
    ),
  );
  const batchOf = (contract: Address) => batchings.get(contract) ?? null;
  const holds = createHolds({ client, relayer: arbiter, ceiling, batchingOf: batchOf });
  const escrowed = { contracts, chains, holds };
  const schemes = [
    createExact({ chains, simulators, settler }),
    createAuthCapture({
      ...escrowed,
      factories,
      isSignedByWrapped: ({ network, ...signed }, asker) => chains[network].verifyWrappedSignature(signed, asker),
    }),
    createCommerce(escrowed),
  ];
  return new Map(schemes.map((scheme) => [scheme.id, scheme]));
}

/** Fifty of the dearest holds take 12 million gas, and a transaction on Base may have 16.7 (EIP-7825). */
const MOST_HOLDS = 50;

interface Sending {
  readonly policy: BatchPolicy;
  readonly log: Logger;
  readonly meter: Meter | null;
}

interface HoldWires extends Sending {
  readonly client: PublicClient;
  readonly relayer: Relayer;
}

const batchingOf = (contract: Address, { policy, meter, ...parts }: HoldWires) =>
  createBatching({
    ...parts,
    network: NETWORKS[ESCROW_NETWORK],
    sharing: holdsOf(contract),
    policy: { ...policy, most: Math.min(policy.most, MOST_HOLDS) },
    // Whether batches are on is told of the facilitator's.
    meter: meter && { ...meter, batching: () => undefined },
  });
