import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { NetworkFacts } from "../../api/platform/networks.ts";
import { type Anvil, startAnvil } from "./anvil.ts";
import { DEV_ACCOUNTS } from "./dev-accounts.ts";
import { flush } from "./replace-file.ts";
import { fundAccounts, installUsdc } from "./usdc.ts";

export interface LocalChain extends Anvil {
  /** Ends the chain and stores its state for the next start. Returns false if that failed. */
  readonly stop: () => Promise<boolean>;
}

export interface ChainPlan {
  readonly network: NetworkFacts;
  readonly port: number;
  /** Where to store the chain's state. */
  readonly directory: string;
  readonly logFile: string;
}

/** Transactions are mined immediately, time advances automatically, and `finalized` is six blocks behind. */
const MINING = ["--mixed-mining", "--block-time", "2", "--slots-in-an-epoch", "3"];
/** Otherwise anvil would also write the whole chain regularly, at 1.7 kB per block. */
const ON_EXIT_ONLY = ["--state-interval", String(10 ** 9)];
/** A chain has 70 MB after a day. */
const STORES_WITHIN_MS = 60_000;
/** The initial balance of each development account: 10,000 USDC and 100 ETH. */
export const DEV_FUNDS = {
  accounts: DEV_ACCOUNTS.map(({ address }) => address),
  usdc: 10_000_000_000n,
  wei: 100n * 10n ** 18n,
};

/**
 * Starts a persistent chain. It resumes from its folder's state, or begins with USDC and funded development accounts.
 */
export async function startChain({ network, port, directory, logFile }: ChainPlan): Promise<LocalChain> {
  mkdirSync(directory, { recursive: true });
  const state = join(directory, "state.json");
  const isNew = !existsSync(state);
  const anvil = await startAnvil({ network, port, options: [...MINING, "--state", state, ...ON_EXIT_ONLY], logFile });
  if (isNew) {
    await installUsdc(anvil.client, network);
    await fundAccounts(anvil.client, network, DEV_FUNDS);
  }
  const stop = async () => {
    // anvil writes blocks and accounts one after the other, so a block mined in between would make them inconsistent.
    await anvil.client.setIntervalMining({ interval: 0 }).catch(() => {});
    await anvil.process.stop(STORES_WITHIN_MS);
    if ((await anvil.process.ended) !== 0) return false;
    flush(state);
    return true;
  };
  return { ...anvil, stop };
}
