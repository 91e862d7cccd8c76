import { setTimeout as delay } from "node:timers/promises";
import type { HardhatRuntimeEnvironment } from "hardhat/types/hre";

const ATTEMPTS = 5;
/** Contains the path of the project whose contracts a parent process has compiled. */
const BUILT = "CONTRACTS_BUILT_IN";

interface BuildOptions {
  /** Whether to skip the Solidity tests. */
  readonly noTests: boolean;
}

/** Compiles changed contracts, unless a parent process has done it. */
export async function buildContracts(hre: HardhatRuntimeEnvironment, options = { noTests: true }): Promise<void> {
  if (process.env[BUILT] !== hre.config.paths.root) await build(hre, options);
}

/** Compiles changed contracts for this process and its children, so that they do not compile concurrently. */
export async function buildContractsFirst(hre: HardhatRuntimeEnvironment, options: BuildOptions): Promise<void> {
  await build(hre, options);
  process.env[BUILT] = hre.config.paths.root;
}

/** Retries, because Hardhat writes its cache without a lock and concurrent builds may fail. */
async function build(hre: HardhatRuntimeEnvironment, options: BuildOptions): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await hre.tasks.getTask("build").run({ quiet: true, ...options });
      return;
    } catch (error) {
      if (attempt === ATTEMPTS) throw error;
      await delay(200);
    }
  }
}
