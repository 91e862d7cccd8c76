import type { Address } from "./wallet.ts";

/** The facts about a chain. All differences between chains are here. */
interface Facts {
  /** CAIP-2 id (https://chainagnostic.org/CAIPs/caip-2). */
  readonly id: string;
  /** The name that x402 version 1 and the specification use. */
  readonly key: string;
  readonly chainId: number;
  /** The name shown to people. */
  readonly name: string;
  /** Circle's USDC; name and version belong to its EIP-712 domain, and differ between chains. */
  readonly usdc: { readonly address: Address; readonly name: string; readonly version: "2"; readonly decimals: 6 };
  readonly explorer: string;
  /** The currency shown to people. */
  readonly money: string;
  /** Whether its money has no value. */
  readonly isTest: boolean;
  /** Seconds between two blocks. */
  readonly blockSeconds: number;
  /** A public node, for wallets that do not know the chain yet. */
  readonly publicRpcUrl: string;
  /** The environment variable with its node's JSON-RPC URL. */
  readonly rpcVariable: string;
}

const TABLE = {
  "eip155:8453": {
    id: "eip155:8453",
    key: "base",
    chainId: 8453,
    name: "Base",
    usdc: { address: "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913", name: "USD Coin", version: "2", decimals: 6 },
    explorer: "https://basescan.org",
    money: "USDC",
    isTest: false,
    blockSeconds: 2,
    publicRpcUrl: "https://mainnet.base.org",
    rpcVariable: "BASE_RPC_URL",
  },
  "eip155:84532": {
    id: "eip155:84532",
    key: "base-sepolia",
    chainId: 84532,
    name: "Base Sepolia",
    usdc: { address: "0x036cbd53842c5426634e7929541ec2318f3dcf7e", name: "USDC", version: "2", decimals: 6 },
    explorer: "https://sepolia.basescan.org",
    money: "test USDC on Base Sepolia",
    isTest: true,
    blockSeconds: 2,
    publicRpcUrl: "https://sepolia.base.org",
    rpcVariable: "BASE_SEPOLIA_RPC_URL",
  },
} as const satisfies Record<string, Facts>;

/** The chains that the service takes payments on, by their CAIP-2 ids. */
export type Network = keyof typeof TABLE;

type Each<Fact extends keyof Facts> = (typeof TABLE)[Network][Fact];

export type RpcVariable = Each<"rpcVariable">;

export interface NetworkFacts extends Facts {
  readonly id: Network;
  readonly key: Each<"key">;
  readonly rpcVariable: RpcVariable;
}

export const NETWORKS: Readonly<Record<Network, NetworkFacts>> = TABLE;

/** The values of `MAIN_NETWORK`: the keys of networks, Base first. */
export const MAIN_NETWORK_KEYS = Object.values(NETWORKS).map(({ key }) => key);

/**
 * The network of tests, scores, verdicts, and escrow: Base, unless the variable of this name makes the whole
 * installation a rehearsal on the test network. It is read here, once, because schemas and texts depend on it before
 * there is a configuration. `parseConfig` refuses a value that is not a network's key.
 */
export const MAIN_NETWORK: Network =
  Object.values(NETWORKS).find(({ key }) => key === process.env.MAIN_NETWORK)?.id ?? "eip155:8453";

/** The network on which paying costs nothing, for the café. */
export const TEST_NETWORK: Network = "eip155:84532";

/** The main network if it is a test network, which everything published then mentions. Null on Base. */
export const REHEARSED_ON: NetworkFacts | null = NETWORKS[MAIN_NETWORK].isTest ? NETWORKS[MAIN_NETWORK] : null;

/** Makes one value for every network. */
export const eachNetwork = <T>(make: (network: Network) => T): Record<Network, T> =>
  Object.fromEntries(Object.values(NETWORKS).map(({ id }) => [id, make(id)])) as Record<Network, T>;

/** Returns the network of a chain id; throws for an unknown chain. */
export function networkOfChain(chainId: number): Network {
  const found = Object.values(NETWORKS).find((network) => network.chainId === chainId);
  if (found === undefined) throw new Error(`no network has the chain id ${chainId}`);
  return found.id;
}

let localUrl: string | null = null;
let localNodes: Partial<Record<Network, string | undefined>> = {};

/**
 * Sets the target of links on a local instance to its own records, because a public explorer does not show a local
 * chain. Null for the public explorers.
 * @param nodes of local chains, for samples, in place of public ones
 */
export function linkLocally(baseUrl: string | null, nodes: typeof localNodes = {}): void {
  localUrl = baseUrl;
  localNodes = nodes;
}

/** Returns the node for samples. On a local instance, it is the node of the chain that it sells on. */
export const sampleRpcUrl = (network: Network): string => localNodes[network] ?? NETWORKS[network].publicRpcUrl;

export const explorerAddressUrl = (network: Network, address: string): string =>
  localUrl === null ? `${NETWORKS[network].explorer}/address/${address}` : `${localUrl}/verify?wallet=${address}`;

export const explorerTransactionUrl = (network: Network, transaction: string): string =>
  localUrl === null
    ? `${NETWORKS[network].explorer}/tx/${transaction}`
    : `${localUrl}/receipt?transaction=${transaction}`;
