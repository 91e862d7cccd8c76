import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import hre from "hardhat";
import { getCreate2Address, type Hex, keccak256 } from "viem";
import { describe, expect, test } from "vitest";
import { CREATEX, SETTLEMENT_BATCH } from "../../contracts/settlement-batch.ts";
import { deploySettlementBatch } from "../../scripts/deploy-shared.ts";
import { installCreateX } from "../../scripts/embedded/createx.ts";
import { prepareDeployment } from "./deployment-ground.ts";

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
  const { settings, client, sent, hardhat } = prepareDeployment(network, network === "localBase" ? 0 : 3);
  const deploy = async (journal: string) => deploySettlementBatch(await hardhat(journal), settings);

  test("a chain without CreateX is refused", async () => {
    await expect(deploy("first")).rejects.toThrow("CreateX");
    expect(await sent()).toBe(0);
  });

  test("it is deployed to its own address", async () => {
    await installCreateX(client());
    expect(await deploy("first")).toBe(address);
    expect(await sent()).toBe(1);
    expect(keccak256((await client().getCode({ address })) ?? "0x")).toBe(codeHash);
  });

  test("it is found by every deployer, and nothing is sent", async () => {
    expect(await deploy("first")).toBe(address);
    expect(await deploy("another")).toBe(address);
    expect(await sent()).toBe(1);
  });

  test("other code at its address is refused", async () => {
    await client().setCode({ address, bytecode: "0x00" });
    await expect(deploy("first")).rejects.toThrow("is not the settlement batch's");
  });
});
