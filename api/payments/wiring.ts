import type pg from "pg";
import type { Logger } from "pino";
import type { PublicClient } from "viem";
import { ESCROW_NETWORK } from "../escrow/payment.ts";
import { createChain } from "../platform/chain/chain.ts";
import type { Config } from "../platform/config/config.ts";
import type { Meter } from "../platform/metrics/meter.ts";
import { eachNetwork, MAIN_NETWORK, NETWORKS, type Network } from "../platform/networks.ts";
import { SHARES } from "../platform/relayer/places.ts";
import { createRelayer, type Relayer } from "../platform/relayer/relayer.ts";
import type { Address } from "../platform/wallet.ts";
import type { Scheme } from "./scheme.ts";
import { createAuthCapture } from "./schemes/auth-capture.ts";
import { createCommerce } from "./schemes/commerce.ts";
import type { EscrowContract } from "./schemes/escrowed.ts";
import { createExact, type Settler } from "./schemes/exact.ts";
import { type BatchPolicy, createBatching } from "./settle/batching.ts";
import { createInProcessSettler, createRemoteSettler } from "./settle/facilitator.ts";
import { createHolds, holdsOf } from "./settle/holds.ts";
import type { CostCeiling } from "./settle/simulation.ts";
import { createTransferSimulator, type SimulatorParts, transfersTo } from "./settle/transfer.ts";

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

export interface ChainWires {
  readonly pool: pg.Pool;
  readonly log: Logger;
  readonly meter: Meter | null;
}

/** The test network's gas has no value. */
const mostLostWei = ({ failedGasWei }: Config, network: Network): bigint | null =>
  network === MAIN_NETWORK ? failedGasWei : null;

/** Everything that talks to chains and facilitators. */
export function wireChains(config: Config, { pool, log, meter }: ChainWires) {
  const { rpcUrls, logBlockRange, rpcBatch } = config;
  const chains = eachNetwork((network) => createChain(network, { rpcUrl: rpcUrls[network], logBlockRange, rpcBatch }));
  // The test network's money has no value, and its gas neither.
  const ceilings = eachNetwork((network) => (network === MAIN_NETWORK ? config.costCeiling : null));
  const simulator = (network: Network, by: Pick<SimulatorParts, "sentBy" | "simulateTogether">) =>
    createTransferSimulator({
      client: chains[network].client,
      network: NETWORKS[network],
      ceiling: ceilings[network],
      ...by,
    });
  if ("remote" in config.facilitator) {
    const settler = createRemoteSettler(config.facilitator.remote);
    const simulators = eachNetwork((network) =>
      simulator(network, { sentBy: null, simulateTogether: async () => null }),
    );
    return { chains, relayers: null, settler, simulators };
  }
  const { privateKey } = config.facilitator;
  const lanes = eachNetwork((network) => {
    const { client } = chains[network];
    const { chainId } = NETWORKS[network];
    const relayer = createRelayer({
      pool,
      log,
      privateKey,
      client,
      chainId,
      counter: meter && {
        relayed: (mined) => meter.relayed(network, mined),
        replaced: () => meter.replaced(network),
        turnedAway: (because) => meter.turnedAway(network, because),
      },
      shares: SHARES.facilitator,
      mostLostWei: mostLostWei(config, network),
    });
    const { payTo, batches: policy } = config;
    const sharing = transfersTo({ usdc: NETWORKS[network].usdc.address, payTo });
    return {
      relayer,
      ceiling: ceilings[network],
      batching: createBatching({ client, network: NETWORKS[network], relayer, sharing, policy, log, meter }),
    };
  });
  return {
    chains,
    relayers: eachNetwork((network) => lanes[network].relayer),
    settler: createInProcessSettler(lanes),
    simulators: eachNetwork((network) => {
      const { relayer, batching } = lanes[network];
      return simulator(network, { sentBy: relayer, simulateTogether: batching.simulate });
    }),
  };
}
