// Written by `npm run docs` from the service's own table.

/** The chains that the service knows, by CAIP-2. Circle's USDC has the name of its EIP-712 domain; the version is "2". */
export const NETWORKS = {
  "eip155:8453": {
    key: "base",
    chainId: 8453,
    usdc: { address: "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913", name: "USD Coin" },
  },
  "eip155:84532": {
    key: "base-sepolia",
    chainId: 84532,
    usdc: { address: "0x036cbd53842c5426634e7929541ec2318f3dcf7e", name: "USDC" },
  },
} as const;

export type Network = keyof typeof NETWORKS;
