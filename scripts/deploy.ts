// Deploys the escrow, the operator, the evaluator, the settlement batch, and the log anchor: `npm run deploy -- --network
// base`. The addresses depend on the roles. Contracts that are already deployed are found, and not sent again.
import { parseArgs } from "node:util";
import hre from "hardhat";
import { createPublicClient, formatEther, http, type PublicClient } from "viem";
import { deploymentBlock, estimateCost, sendDeployment } from "./deploy-chain.ts";
import { type Planned, planDeployment } from "./deploy-plan.ts";
import { type DeploySettings, readDeploySettings } from "./deploy-settings.ts";
import { buildContracts } from "./embedded/build-contracts.ts";

const USAGE = "Usage: npm run deploy -- --network <network> [--dry-run]";
const OPTIONS = { network: { type: "string" }, "dry-run": { type: "boolean", default: false } } as const;

function readArguments() {
  try {
    return parseArgs({ options: OPTIONS }).values;
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${USAGE}`);
  }
}

async function connect({ network, facts, rpcUrl }: DeploySettings): Promise<PublicClient> {
  const client = createPublicClient({ transport: http(rpcUrl), cacheTime: 0 });
  const chainId = await client.getChainId().catch(() => null);
  if (chainId === null) throw new Error(`The node of ${network} does not respond: check ${facts.rpcVariable}.`);
  if (chainId !== facts.chainId)
    throw new Error(`The node of ${network} is on chain ${chainId}; expected ${facts.chainId}.`);
  return client;
}

const tell = (name: string, text: string) => console.log(`${name.padEnd(13)} ${text}`);

function report(planned: readonly Planned[], isNew: (one: Planned) => boolean): void {
  for (const one of planned) {
    if (one.obstacle !== null) {
      tell(one.name, `is skipped: ${one.obstacle}`);
      continue;
    }
    tell(
      one.name,
      `${one.address} ${one.isDeployed ? (isNew(one) ? "is deployed" : "was already deployed") : "would be deployed"}`,
    );
    tell("  arguments", one.constructorArguments);
    tell("  compiler", `"input" in ${one.compilerFile}`);
  }
}

/** The variables for the API and the indexer. */
async function environmentLines(client: PublicClient, planned: readonly Planned[]): Promise<readonly string[]> {
  const there = new Map(planned.filter(({ isDeployed }) => isDeployed).map(({ name, address }) => [name, address]));
  const escrows = [there.get("escrow"), there.get("operator")].filter((address) => address !== undefined);
  const [escrow] = escrows;
  const block = escrow === undefined ? null : await deploymentBlock(client, escrow);
  return [
    `ESCROW_ADDRESSES=${escrows.join(",")}`,
    `EVALUATOR_ADDRESS=${there.get("evaluator") ?? ""}`,
    block === null
      ? "# ESCROW_START_BLOCK: the block of the escrow's deployment, from an explorer, because this node does not have it"
      : `ESCROW_START_BLOCK=${block}`,
  ];
}

async function main(): Promise<void> {
  const { network, "dry-run": isDryRun } = readArguments();
  const settings = readDeploySettings(network, process.env, isDryRun);
  await buildContracts(hre);
  const client = await connect(settings);
  for (const [role, account] of Object.entries(settings.roles)) tell(role, account);
  const found = await planDeployment(hre, client, settings.roles);
  const missing = found.filter(({ isDeployed, obstacle }) => !isDeployed && obstacle === null);
  const { privateKey } = settings;
  if (isDryRun || privateKey === null) {
    report(found, () => false);
    const { gas, wei } = await estimateCost(client, missing);
    console.log(
      `\n${missing.length} transactions would be sent: ${gas} gas, about ${formatEther(wei)} ETH at the current price.`,
    );
    return;
  }
  if (missing.length > 0) await sendDeployment(client, { ...settings, privateKey }, missing);
  const after = missing.length === 0 ? found : await planDeployment(hre, client, settings.roles);
  report(after, ({ address }) => missing.some((one) => one.address === address));
  console.log(`\n${missing.length} transactions were sent. For the environment of the API and the indexer:\n`);
  for (const line of await environmentLines(client, after)) console.log(line);
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
