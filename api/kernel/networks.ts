import type { Address } from "./wallet.ts";

/** CAIP-2 ids of the chains the service takes payments on (https://chainagnostic.org/CAIPs/caip-2). */
export type Network = "eip155:8453" | "eip155:84532";

export interface NetworkFacts {
  readonly id: Network;
  /** The name that x402 version 1 and the specification use. */
  readonly key: "base" | "base-sepolia";
  readonly chainId: number;
  /** Circle's USDC. The name and version are those of its EIP-712 domain, which differ between the two chains. */
  readonly usdc: { readonly address: Address; readonly name: string; readonly version: "2"; readonly decimals: 6 };
  readonly explorer: string;
  /** The currency to show to people. */
  readonly money: string;
}

export const NETWORKS: Readonly<Record<Network, NetworkFacts>> = {
  "eip155:8453": {
    id: "eip155:8453",
    key: "base",
    chainId: 8453,
    usdc: { address: "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913", name: "USD Coin", version: "2", decimals: 6 },
    explorer: "https://basescan.org",
    money: "USDC",
  },
  "eip155:84532": {
    id: "eip155:84532",
    key: "base-sepolia",
    chainId: 84532,
    usdc: { address: "0x036cbd53842c5426634e7929541ec2318f3dcf7e", name: "USDC", version: "2", decimals: 6 },
    explorer: "https://sepolia.basescan.org",
    money: "test USDC on Base Sepolia",
  },
};

export const explorerAddressUrl = (network: Network, address: string): string =>
  `${NETWORKS[network].explorer}/address/${address}`;

export const explorerTransactionUrl = (network: Network, transaction: string): string =>
  `${NETWORKS[network].explorer}/tx/${transaction}`;
