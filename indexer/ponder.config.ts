import { createConfig } from "ponder";
import { MAIN_NETWORK, NETWORKS } from "../api/kernel/networks.ts";
import { escrowEventsAbi, usdcEventsAbi } from "../contracts/abi.ts";
import { reclaimedEvent } from "../contracts/commerce-payments.ts";

// The launcher has checked these values; `indexer/settings.ts` says what they mean.
const env = process.env;
const { chainId, usdc } = NETWORKS[MAIN_NETWORK];

const escrows = (env.ESCROW_ADDRESSES ?? "").split(",").filter(Boolean) as `0x${string}`[];
const escrow = {
  Escrow: {
    chain: "base",
    abi: escrowEventsAbi,
    address: escrows,
    startBlock: Number(env.ESCROW_START_BLOCK),
  },
} as const;
const custodies = (env.CUSTODIES ?? "").split(",").filter(Boolean) as `0x${string}`[];
const custody = {
  Custody: {
    chain: "base",
    abi: [reclaimedEvent],
    address: custodies,
    startBlock: Number(env.ESCROW_START_BLOCK),
  },
} as const;
/** Ponder refuses a contract without an address, and derives its events' types from the configuration. */
const withoutEscrow = {} as typeof escrow;
const withoutCustody = {} as typeof custody;

export default createConfig({
  database: {
    kind: "postgres",
    connectionString: env.DATABASE_URL ?? "",
    poolConfig: { max: 10 },
  },
  chains: {
    base: {
      id: chainId,
      rpc: (env.BASE_RPC_URL ?? "").split(","),
      ...(env.BASE_WS_URL ? { ws: env.BASE_WS_URL } : {}),
      pollingInterval: Number(env.POLL_MS),
    },
  },
  contracts: {
    Usdc: { chain: "base", abi: usdcEventsAbi, address: usdc.address, startBlock: Number(env.START_BLOCK) },
    ...(escrows.length > 0 ? escrow : withoutEscrow),
    ...(custodies.length > 0 ? custody : withoutCustody),
  },
  // From the newest block at each start: older ones are not fetched for it.
  blocks: { Head: { chain: "base", interval: 1, startBlock: "latest" } },
});
