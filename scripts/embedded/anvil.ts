import { createRequire } from "node:module";
import { setTimeout as delay } from "node:timers/promises";
import {
  createTestClient,
  defineChain,
  type Hex,
  http,
  type PublicActions,
  publicActions,
  WaitForTransactionReceiptTimeoutError,
  walletActions,
} from "viem";
import type { NetworkFacts } from "../../api/platform/networks.ts";
import { DEV_MNEMONIC } from "./dev-accounts.ts";
import { type GuardedProcess, startGuarded } from "./guarded-process.ts";
import { waitUntil } from "./wait-until.ts";

export interface AnvilPlan {
  readonly network: NetworkFacts;
  readonly port: number;
  /** Additional command-line options, such as the mining mode and state files. */
  readonly options: readonly string[];
  readonly logFile?: string;
}

export interface Anvil {
  readonly rpcUrl: string;
  readonly client: AnvilClient;
  readonly process: GuardedProcess;
}

export type AnvilClient = ReturnType<typeof anvilClient>;

/** Creates a client that reads, signs for the node's own accounts, and controls the node's time, blocks, and balances. */
export const anvilClient = (rpcUrl: string, network: NetworkFacts) =>
  createTestClient({
    mode: "anvil",
    chain: chainOf(network, rpcUrl),
    transport: http(rpcUrl, { timeout: 30_000 }),
    cacheTime: 0,
    pollingInterval: 25,
  })
    .extend(publicActions)
    .extend(walletActions)
    .extend(waiting);

const LOOK_EVERY_MS = 20;

/**
 * Polls for the receipt. viem checks once per block and misses a block that is mined during the check. With blocks on demand
 * there may be no later block, so it would wait forever.
 */
const waiting = (client: { readonly getTransactionReceipt: PublicActions["getTransactionReceipt"] }) => ({
  async waitForTransactionReceipt({ hash, timeout = 120_000 }: { readonly hash: Hex; readonly timeout?: number }) {
    for (const deadline = Date.now() + timeout; Date.now() < deadline; await delay(LOOK_EVERY_MS)) {
      const receipt = await client.getTransactionReceipt({ hash }).catch(() => null);
      if (receipt !== null) return receipt;
    }
    throw new WaitForTransactionReceiptTimeoutError({ hash });
  },
});

// Not from `viem/chains`, which loads files for hundreds of chains.
const chainOf = ({ chainId, key }: NetworkFacts, rpcUrl: string) =>
  defineChain({
    id: chainId,
    name: key,
    nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
    rpcUrls: { default: { http: [rpcUrl] } },
  });

/**
 * EIP-2935's contract has a storage slot per block hash, and anvil rehashes all of that storage with every block. After 1,500
 * blocks, that is nine tenths of the cost of an empty block. We do not use the contract.
 */
const BLOCK_HASHES = "0x0000F90827F1C53a10cb7A02335B175320002935";

/** Starts a chain on 127.0.0.1 and waits until it responds. */
export async function startAnvil({ network, port, options, logFile }: AnvilPlan): Promise<Anvil> {
  const rpcUrl = `http://127.0.0.1:${port}`;
  const flags = [
    "--host",
    "127.0.0.1",
    "--port",
    String(port),
    "--chain-id",
    String(network.chainId),
    "--optimism",
    // Close to Base's 0.005 gwei, and lower after empty blocks. At anvil's default of 1 gwei, gas costs more than the products.
    "--block-base-fee-per-gas",
    "12500000",
    "--mnemonic",
    DEV_MNEMONIC,
    "--quiet",
  ];
  const child = await startGuarded({
    command: anvilBinary(),
    args: [...flags, ...options],
    stopSignal: "SIGINT",
    ...(logFile === undefined ? {} : { logFile }),
  });
  const client = anvilClient(rpcUrl, network);
  const answers = async () => !child.running() || (await client.getChainId()) === network.chainId;
  if (!(await waitUntil(answers, 30_000, 20)) || !child.running()) {
    await child.stop();
    throw new Error(`The local chain ${network.chainId} did not start on port ${port}. ${child.lastOutput().trim()}`);
  }
  await client.setCode({ address: BLOCK_HASHES, bytecode: "0x" });
  return { rpcUrl, client, process: child };
}

/**
 * Returns the real program. npm's `anvil` is a Node wrapper that leaves the real program running after a SIGKILL.
 */
function anvilBinary(): string {
  const require = createRequire(createRequire(import.meta.url).resolve("@foundry-rs/anvil/package.json"));
  const arch = process.arch === "x64" ? "amd64" : process.arch;
  return require.resolve(`@foundry-rs/anvil-${process.platform}-${arch}/bin/anvil`);
}
