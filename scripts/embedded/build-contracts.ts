import { setTimeout as delay } from "node:timers/promises";
import type { HardhatRuntimeEnvironment } from "hardhat/types/hre";

const ATTEMPTS = 5;

/** Compiles what has changed. Hardhat writes its cache without a lock, so concurrent builds that fail try again. */
export async function buildContracts(
  hre: HardhatRuntimeEnvironment,
  options: { readonly noTests: boolean } = { noTests: true },
): Promise<void> {
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
