import { afterAll, beforeAll } from "vitest";
import { type DeploySettings, readDeploySettings } from "../../scripts/deploy-settings.ts";
import { type Anvil, startAnvil } from "../../scripts/embedded/anvil.ts";
import { devAccount, privateKeyOf } from "../../scripts/embedded/dev-accounts.ts";
import { freePort } from "../../scripts/embedded/ports.ts";

/** A local chain to which one account deploys. */
export interface DeploymentGround {
  readonly settings: () => DeploySettings;
  /** The variables of the roles, of the deployer, and of the chain's port. */
  readonly env: () => Readonly<Record<string, string>>;
  readonly client: () => Anvil["client"];
  /** The number of transactions that the account has sent. */
  readonly sent: () => Promise<number>;
}

/** Starts the chain before the tests of a `describe` and removes it afterwards. */
export function prepareDeployment(): DeploymentGround {
  const deployer = devAccount(0);
  const port = freePort();
  let env: Readonly<Record<string, string>>;
  let chain: Anvil;
  let settings: DeploySettings;
  beforeAll(async () => {
    env = {
      BASE_SEPOLIA_RPC_PORT: String(await port),
      DEPLOYER_PRIVATE_KEY: privateKeyOf(deployer),
      ARBITER_ADDRESS: devAccount(1).address,
      FEE_RECIPIENT_ADDRESS: devAccount(2).address,
    };
    settings = readDeploySettings("localBaseSepolia", env);
    chain = await startAnvil({ network: settings.facts, port: await port, options: [] });
  });
  afterAll(() => chain?.process.stop());
  return {
    settings: () => settings,
    env: () => env,
    client: () => chain.client,
    sent: () => chain.client.getTransactionCount({ address: deployer.address }),
  };
}
