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
  /** More command-line options: mining mode, state files. */
  readonly options: readonly string[];
  readonly logFile?: string;
}

export interface Anvil {
  readonly rpcUrl: string;
  readonly client: AnvilClient;
  readonly process: GuardedProcess;
}

export type AnvilClient = ReturnType<typeof anvilClient>;

/** A client that reads, signs for the node's own accounts, and controls the node's time, blocks and balances. */
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
 * Looks for the receipt until it is there. viem looks once a block, and not at one that comes while it looks: where blocks
 * come on demand there may be no other, and it never ends.
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
 * EIP-2935's contract has a storage slot for every block's hash, and with every block the whole of that storage is hashed again:
 * after 1,500 blocks it is nine tenths of what an empty block costs. Nothing here asks it.
 */
const BLOCK_HASHES = "0x0000F90827F1C53a10cb7A02335B175320002935";

/** Starts a chain on 127.0.0.1 and waits until it answers. */
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
    // Near Base's 0.005 gwei, which it falls below in empty blocks. At anvil's own gwei, gas costs more than what is sold.
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
 * npm's `anvil` is a Node wrapper that leaves the real program running after a SIGKILL, so the real program is started
 * directly.
 */
function anvilBinary(): string {
  const require = createRequire(createRequire(import.meta.url).resolve("@foundry-rs/anvil/package.json"));
  const arch = process.arch === "x64" ? "amd64" : process.arch;
  return require.resolve(`@foundry-rs/anvil-${process.platform}-${arch}/bin/anvil`);
}
