import { MAIN_NETWORK, NETWORKS } from "../api/kernel/networks.ts";
import { escrowEventsAbi } from "../contracts/abi.ts";

// What both roots' configurations have. The launcher has checked these values; `settings.ts` says what they mean.

const env = process.env;
const { chainId } = NETWORKS[MAIN_NETWORK];

/** Ponder keeps the name in its own tables. */
export const CHAIN = "base";

export const listOf = (text: string | undefined) => (text ?? "").split(",").filter(Boolean) as `0x${string}`[];

export const database = (connections: number) =>
  ({ kind: "postgres", connectionString: env.DATABASE_URL ?? "", poolConfig: { max: connections } }) as const;

export const chains = {
  [CHAIN]: {
    id: chainId,
    rpc: (env.BASE_RPC_URL ?? "").split(","),
    ...(env.BASE_WS_URL ? { ws: env.BASE_WS_URL } : {}),
    pollingInterval: Number(env.POLL_MS),
  },
};

/** From the newest block at each start: older ones are not fetched for it. */
export const blocks = { Head: { chain: CHAIN, interval: 1, startBlock: "latest" } } as const;

export const escrow = {
  Escrow: {
    chain: CHAIN,
    abi: escrowEventsAbi,
    address: listOf(env.ESCROW_ADDRESSES),
    startBlock: Number(env.ESCROW_START_BLOCK),
  },
} as const;
