import { setTimeout as delay } from "node:timers/promises";
import type { HardhatRuntimeEnvironment } from "hardhat/types/hre";

const ATTEMPTS = 5;
/** Names the project whose contracts a parent process has compiled. */
const BUILT = "CONTRACTS_BUILT_IN";

interface BuildOptions {
  /** The Solidity tests are left out. */
  readonly noTests: boolean;
}

/** Compiles what has changed, unless a parent process has done it. */
export async function buildContracts(hre: HardhatRuntimeEnvironment, options = { noTests: true }): Promise<void> {
  if (process.env[BUILT] !== hre.config.paths.root) await build(hre, options);
}

/** Compiles what has changed, for this process and all that it will start: they compile nothing at the same time. */
export async function buildContractsFirst(hre: HardhatRuntimeEnvironment, options: BuildOptions): Promise<void> {
  await build(hre, options);
  process.env[BUILT] = hre.config.paths.root;
}

/** Hardhat writes its cache without a lock, so concurrent builds that fail try again. */
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
