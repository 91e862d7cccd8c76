import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import hre from "hardhat";
import { createHardhatRuntimeEnvironment } from "hardhat/hre";
import { getCreate2Address, type Hex, keccak256 } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CREATEX, SETTLEMENT_BATCH } from "../../contracts/settlement-batch.ts";
import hardhatConfig from "../../hardhat.config.ts";
import { readDeploySettings } from "../../scripts/deploy-settings.ts";
import { deploySettlementBatch } from "../../scripts/deploy-settlement-batch.ts";
import { type Anvil, startAnvil } from "../../scripts/embedded/anvil.ts";
import { installCreateX } from "../../scripts/embedded/createx.ts";
import { devAccount, privateKeyOf } from "../../scripts/embedded/dev-accounts.ts";
import { freePort } from "../../scripts/embedded/ports.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const { address, codeHash, salt } = SETTLEMENT_BATCH;

test("the address and the code hash are those of the compiler's output", async () => {
  const { bytecode, deployedBytecode } = await hre.artifacts.readArtifact("SettlementBatch");
  expect(keccak256(deployedBytecode as Hex)).toBe(codeHash);
  // CreateX hashes a salt that names no deployer.
  expect(getCreate2Address({ from: CREATEX, salt: keccak256(salt), bytecode: bytecode as Hex })).toBe(address);
});

test("docs/operations.md names the address", () => {
  expect(readFileSync(join(ROOT, "docs/operations.md"), "utf8")).toContain(address);
});

describe.each(["localBase", "localBaseSepolia"] as const)("on %s", (network) => {
  const deployer = devAccount(network === "localBase" ? 0 : 3);
  const folder = mkdtempSync(join(tmpdir(), "deploy-settlement-batch-"));
  const env = {
    DEPLOYER_PRIVATE_KEY: privateKeyOf(deployer),
    ARBITER_ADDRESS: devAccount(1).address,
    FEE_RECIPIENT_ADDRESS: devAccount(2).address,
  };
  const settings = readDeploySettings(network, env, ROOT);
  let chain: Anvil;

  beforeAll(async () => {
    chain = await startAnvil({ network: settings.facts, port: await freePort(), options: [] });
  });
  afterAll(async () => {
    await chain?.process.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function deploy(journal: string) {
    const { chainId } = settings.facts;
    const networks = {
      ...hardhatConfig.networks,
      [network]: { type: "http", chainType: "op", chainId, url: chain.rpcUrl } as const,
    };
    const paths = { ignition: join(folder, journal) };
    return deploySettlementBatch(
      await createHardhatRuntimeEnvironment({ ...hardhatConfig, networks, paths }, {}, ROOT),
      settings,
    );
  }
  const sent = () => chain.client.getTransactionCount({ address: deployer.address });

  test("a chain without CreateX is refused", async () => {
    await expect(deploy("first")).rejects.toThrow("CreateX");
    expect(await sent()).toBe(0);
  });

  test("it is deployed to its own address", async () => {
    await installCreateX(chain.client);
    expect(await deploy("first")).toBe(address);
    expect(await sent()).toBe(1);
    expect(keccak256((await chain.client.getCode({ address })) ?? "0x")).toBe(codeHash);
  });

  test("it is found, whoever deployed it, and nothing is sent", async () => {
    expect(await deploy("first")).toBe(address);
    expect(await deploy("another")).toBe(address);
    expect(await sent()).toBe(1);
  });

  test("other code at its address is refused", async () => {
    const { client } = chain;
    await client.setCode({ address, bytecode: "0x00" });
    await expect(deploy("first")).rejects.toThrow("is not the settlement batch's");
  });
});
