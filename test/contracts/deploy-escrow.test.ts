import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createHardhatRuntimeEnvironment } from "hardhat/hre";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import hardhatConfig from "../../hardhat.config.ts";
import type { VerifiableDeployment } from "../../scripts/deploy-connection.ts";
import { deployEscrow } from "../../scripts/deploy-escrow.ts";
import { type DeploySettings, readDeploySettings } from "../../scripts/deploy-settings.ts";
import { type Anvil, startAnvil } from "../../scripts/embedded/anvil.ts";
import { devAccount, privateKeyOf } from "../../scripts/embedded/dev-accounts.ts";
import { freePort } from "../../scripts/embedded/ports.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const SOURCE = "contracts/Escrow.sol";
const IMPORTED = ["interfaces/IEscrow.sol", "interfaces/IUsdc.sol"];
const REMARK = "// What the sources said at the time.";
const REFUSED = "is not this project's escrow with these roles";
const DEPLOYER = devAccount(0);

let folder: string;
let settings: DeploySettings;
let chain: Anvil;
let first: VerifiableDeployment;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "deploy-escrow-"));
  settings = readDeploySettings(
    "localBaseSepolia",
    {
      DEPLOYER_PRIVATE_KEY: privateKeyOf(DEPLOYER),
      ARBITER_ADDRESS: devAccount(1).address,
      FEE_RECIPIENT_ADDRESS: devAccount(2).address,
    },
    ROOT,
  );
  chain = await startAnvil({ network: settings.facts, port: await freePort(), options: [] });
  first = await deployFrom(projectWith("earlier", (source) => `${source}\n${REMARK}\n`));
});
afterAll(async () => {
  await chain?.process.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** A copy of the project whose `Escrow.sol` is another one. */
function projectWith(name: string, change: (source: string) => string): string {
  const root = join(folder, name);
  for (const file of IMPORTED) cpSync(join(ROOT, "contracts", file), join(root, "contracts", file));
  writeFileSync(join(root, "package.json"), JSON.stringify({ name, type: "module" }));
  const source = readFileSync(join(ROOT, SOURCE), "utf8");
  const changed = change(source);
  expect(changed).not.toBe(source);
  writeFileSync(join(root, SOURCE), changed);
  return root;
}

/** Deploys from the project's sources; all projects share the journal. */
async function deployFrom(root: string): Promise<VerifiableDeployment> {
  const networks = {
    ...hardhatConfig.networks,
    localBaseSepolia: { type: "http", chainType: "op", chainId: settings.facts.chainId, url: chain.rpcUrl },
  } as const;
  const paths = { ignition: join(folder, "ignition") };
  const hre = await createHardhatRuntimeEnvironment({ ...hardhatConfig, networks, paths }, {}, root);
  return await deployEscrow(hre, settings);
}

const sent = () => chain.client.getTransactionCount({ address: DEPLOYER.address });

describe("an escrow that was deployed when its sources had other comments", () => {
  test("is found again, and nothing is sent", async () => {
    expect(await sent()).toBe(1);
    expect(await deployFrom(ROOT)).toEqual(first);
    expect(await sent()).toBe(1);
  });

  test("is verified on an explorer with the sources that it was compiled from", async () => {
    const { compilerFile } = await deployFrom(ROOT);
    const { input } = JSON.parse(readFileSync(compilerFile, "utf8"));
    expect(input.sources[`project/${SOURCE}`].content).toContain(REMARK);
  });

  test("is refused if the code on the chain is another", async () => {
    const { client } = chain;
    const code = await client.getCode({ address: first.address });
    if (code === undefined) throw new Error("There is no code.");
    await client.setCode({ address: first.address, bytecode: `0x61${code.slice(4)}` });
    await expect(deployFrom(ROOT)).rejects.toThrow(REFUSED);
    await client.setCode({ address: first.address, bytecode: code });
    expect(await deployFrom(ROOT)).toEqual(first);
  });
});

test("an escrow whose code has changed since is not taken for the one on the chain", async () => {
  const later = projectWith("later", (source) => source.replace("TIMEOUT = 30 minutes", "TIMEOUT = 31 minutes"));
  await expect(deployFrom(later)).rejects.toThrow(REFUSED);
  expect(await sent()).toBe(1);
});
