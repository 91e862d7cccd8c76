import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createHardhatRuntimeEnvironment } from "hardhat/hre";
import type { HardhatRuntimeEnvironment } from "hardhat/types/hre";
import { afterAll, beforeAll } from "vitest";
import hardhatConfig from "../../hardhat.config.ts";
import { type DeploySettings, readDeploySettings } from "../../scripts/deploy-settings.ts";
import { type Anvil, startAnvil } from "../../scripts/embedded/anvil.ts";
import { devAccount, privateKeyOf } from "../../scripts/embedded/dev-accounts.ts";
import { freePort } from "../../scripts/embedded/ports.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** A local chain that one account deploys to. */
export interface DeploymentGround {
  readonly settings: DeploySettings;
  readonly roles: { readonly ARBITER_ADDRESS: string; readonly FEE_RECIPIENT_ADDRESS: string };
  readonly client: () => Anvil["client"];
  /** How many transactions the account has sent. */
  readonly sent: () => Promise<number>;
  /** Hardhat with an Ignition journal of this name, connected to the chain. */
  readonly hardhat: (journal?: string) => Promise<HardhatRuntimeEnvironment>;
}

/** Starts it before the tests of a file or a `describe`, and removes it after them. */
export function prepareDeployment(network: "localBase" | "localBaseSepolia", ordinal = 0): DeploymentGround {
  const deployer = devAccount(ordinal);
  const folder = mkdtempSync(join(tmpdir(), "deployment-"));
  const roles = { ARBITER_ADDRESS: devAccount(1).address, FEE_RECIPIENT_ADDRESS: devAccount(2).address };
  const settings = readDeploySettings(network, { DEPLOYER_PRIVATE_KEY: privateKeyOf(deployer), ...roles }, ROOT);
  let chain: Anvil;
  beforeAll(async () => {
    chain = await startAnvil({ network: settings.facts, port: await freePort(), options: [] });
  });
  afterAll(async () => {
    await chain?.process.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    settings,
    roles,
    client: () => chain.client,
    sent: () => chain.client.getTransactionCount({ address: deployer.address }),
    async hardhat(journal = "ignition") {
      const { chainId } = settings.facts;
      const local = { type: "http", chainType: "op", chainId, url: chain.rpcUrl } as const;
      const networks = { ...hardhatConfig.networks, [network]: local };
      const paths = { ignition: join(folder, journal) };
      return createHardhatRuntimeEnvironment({ ...hardhatConfig, networks, paths }, {}, ROOT);
    },
  };
}
