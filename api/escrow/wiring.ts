import type { EvidenceParts } from "../arbiter/gather-evidence.ts";
import type { BehaviourWires } from "../certificates/sessions/wiring.ts";
import { current, schemesIn } from "../payments/schemes/escrowed.ts";
import { createAccount } from "../platform/chain/accounts.ts";
import { createDemoMerchant } from "../platform/chain/seeded-accounts.ts";
import { elapsedMs, sleep } from "../platform/clock.ts";
import type { Meter } from "../platform/metrics/meter.ts";
import { NETWORKS } from "../platform/networks.ts";
import { SHARES } from "../platform/relayer/places.ts";
import { createRelayer, type Relayer } from "../platform/relayer/relayer.ts";
import type { Signer } from "../platform/signing/document.ts";
import { withNotices } from "./carry-outcomes.ts";
import { createEscrowChain } from "./chain.ts";
import { wireContests } from "./contest/wiring.ts";
import { readContracts } from "./contracts-chain.ts";
import { createDemo } from "./demo/sell-espresso.ts";
import { createEscrowIndex } from "./index-store.ts";
import { ESCROW_NETWORK } from "./payment.ts";
import { createEscrowSender, createOverdueHolds } from "./sender-chain.ts";
import { createEscrow } from "./settle-deliveries.ts";
import { createEscrowStore } from "./store.ts";

export interface EscrowWires extends Pick<BehaviourWires, "config" | "pool" | "chains" | "log" | "now"> {
  readonly signer: Signer;
  readonly meter: Meter | null;
  /** Between two looks of the arbiter; defaults to the machine's clock. */
  readonly wait?: EvidenceParts["wait"] | undefined;
}

/** Sends what the arbiter says on chain. */
export const createArbiterRelayer = ({
  config,
  pool,
  chains,
  log,
}: Pick<EscrowWires, "config" | "pool" | "chains" | "log">): Relayer =>
  createRelayer({
    pool,
    log,
    privateKey: config.arbiterKey,
    client: chains[ESCROW_NETWORK].client,
    chainId: NETWORKS[ESCROW_NETWORK].chainId,
    counter: null,
    shares: SHARES.arbiter,
    mostLostWei: config.failedGasWei,
  });

/** The escrow this service arbitrates; without a contract it knows no payment and has nothing to do. */
export async function wireEscrow({ config, pool, chains, log, now, signer, meter, wait }: EscrowWires) {
  const network = ESCROW_NETWORK;
  const { client } = chains[network];
  const contracts = await readContracts(client, network, config.escrowAddresses);
  const relayer = contracts.length === 0 ? null : createArbiterRelayer({ config, pool, chains, log });
  for (const { address, arbiter } of schemesIn(contracts).map((scheme) => current(contracts, scheme)))
    if (relayer && arbiter !== relayer.address.toLowerCase())
      throw new Error(`the arbiter of ${address} is ${arbiter}, but ARBITER_PRIVATE_KEY belongs to ${relayer.address}`);
  const index = createEscrowIndex(pool, { viewsSchema: config.indexViewsSchema });
  const chain = createEscrowChain({ chain: chains[network], contracts, index });
  const arbiter = createAccount(config.arbiterKey);
  const sender = createEscrowSender(relayer && { relayer, arbiter, client, network, log, meter });
  const { store, notices } = withNotices(createEscrowStore(pool));
  const escrow = createEscrow({
    ...wireContests({ config, pool, now, wait }),
    contracts,
    store,
    chain,
    sender,
    overdue: createOverdueHolds(index, network),
    limits: config.escrowLimits,
    signer,
    baseUrl: config.baseUrl,
    now,
    log,
  });
  const merchant = createDemoMerchant(config.decoySeed);
  const demo = createDemo({
    contracts,
    escrow,
    chain,
    ended: notices.ended,
    merchant,
    baseUrl: config.baseUrl,
    elapsedMs,
    sleep,
  });
  const ownWallets = [merchant.address, ...contracts.flatMap((one) => [one.arbiter, one.feeRecipient])];
  /** What all contracts hold, in atomic USDC; null while the index cannot tell. */
  const held = async () => {
    const balances = await Promise.all(contracts.map(({ address }) => index.balances(address)));
    if (balances.includes(null)) return null;
    return balances.reduce((sum, one) => sum + (one && one !== "absent" ? one.held : 0n), 0n);
  };
  return { escrow: { ...escrow, onDecided: notices.onDecided }, demo, contracts, chain, held, ownWallets, relayer };
}
