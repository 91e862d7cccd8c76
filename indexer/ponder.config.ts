import { createConfig } from "ponder";
import { MAIN_NETWORK, NETWORKS } from "../api/platform/networks.ts";
import { escrowEventsAbi, usdcEventsAbi } from "../contracts/abi.ts";
import { reclaimedEvent } from "../contracts/commerce-payments.ts";
import { endWithLauncher, onConnect } from "./child.ts";
import { CUSTODIES, ESCROW_START_BLOCK, ESCROWS, listOf, START_BLOCK } from "./environment.ts";

endWithLauncher();

const { chainId, usdc } = NETWORKS[MAIN_NETWORK];
/** Ponder stores this name in its tables. */
const CHAIN = "base";
const { PONDER_RPC_URL_8453: rpc, PONDER_WS_URL_8453: ws, POLL_MS } = process.env;

const fromFirstEscrow = { chain: CHAIN, startBlock: ESCROW_START_BLOCK } as const;
const escrow = { Escrow: { ...fromFirstEscrow, abi: escrowEventsAbi, address: [...ESCROWS] } } as const;
const custody = { Custody: { ...fromFirstEscrow, abi: [reclaimedEvent], address: [...CUSTODIES] } } as const;
// Ponder rejects a contract without an address, and derives the event types from the configuration.
const none = {} as typeof escrow & typeof custody;

export default createConfig({
  database: { kind: "postgres", poolConfig: { max: 10, ...onConnect } },
  chains: {
    [CHAIN]: {
      id: chainId,
      rpc: [...listOf(rpc)],
      ...(ws ? { ws } : {}),
      pollingInterval: Number(POLL_MS || 1000),
    },
  },
  contracts: {
    Usdc: { chain: CHAIN, abi: usdcEventsAbi, address: usdc.address, startBlock: START_BLOCK },
    ...(ESCROWS.length > 0 ? escrow : none),
    ...(CUSTODIES.length > 0 ? custody : none),
  },
  // Starts at the newest block, so that older blocks are not fetched for it.
  blocks: { Head: { chain: CHAIN, interval: 1, startBlock: "latest" } },
});
