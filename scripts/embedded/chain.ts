import type { NetworkFacts } from "../../api/kernel/networks.ts";
import { type Anvil, startAnvil } from "./anvil.ts";
import { keepSaving, newestState, saveState, stateFiles } from "./chain-state.ts";
import { DEV_ACCOUNTS } from "./dev-accounts.ts";
import { fundAccounts, installUsdc } from "./usdc.ts";

export interface LocalChain extends Anvil {
  readonly network: NetworkFacts;
  /** Ends the chain and saves its state for the next start. */
  readonly stop: () => Promise<void>;
}

export interface ChainPlan {
  readonly network: NetworkFacts;
  readonly port: number;
  /** Where to store the chain's state. */
  readonly directory: string;
  readonly logFile: string;
}

/** Transactions are mined at once, time advances on its own, and `finalized` is six blocks behind. */
const MINING = ["--mixed-mining", "--block-time", "2", "--slots-in-an-epoch", "3"];
const NEVER = String(10 ** 9);
/** The initial balance of each development account: 10,000 USDC and 100 ETH. */
export const DEV_FUNDS = {
  accounts: DEV_ACCOUNTS.map(({ address }) => address),
  usdc: 10_000_000_000n,
  wei: 100n * 10n ** 18n,
};

/**
 * Starts a persistent chain: it resumes from its folder's state, or starts with USDC and funded development accounts.
 */
export async function startChain({ network, port, directory, logFile }: ChainPlan): Promise<LocalChain> {
  const files = stateFiles(directory);
  const state = newestState(files);
  const load = state === null ? [] : ["--load-state", state];
  const options = [...MINING, ...load, "--dump-state", files.exit, "--state-interval", NEVER];
  const anvil = await startAnvil({ network, port, options, logFile });
  if (state === null) {
    await installUsdc(anvil.client, network);
    await fundAccounts(anvil.client, network, DEV_FUNDS);
    await saveState(anvil.client, files.saved);
  }
  const saving = new AbortController();
  const saved = keepSaving(anvil.client, files.saved, saving.signal);
  const stop = async () => {
    saving.abort();
    await anvil.process.stop(15_000);
    await saved;
  };
  return { ...anvil, network, stop };
}
