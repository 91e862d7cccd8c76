import { createConfig } from "ponder";
import { NETWORKS } from "../api/kernel/networks.ts";
import { usdcEventsAbi } from "../contracts/abi.ts";

// The launcher has checked these values; `indexer/settings.ts` says what they mean.
const env = process.env;
const { chainId, usdc } = NETWORKS["eip155:8453"];

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
  },
});
