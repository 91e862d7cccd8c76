import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createHardhatRuntimeEnvironment } from "hardhat/hre";
import { type Address, getAddress } from "viem";
import { afterAll, beforeAll, expect, test } from "vitest";
import { operatorAbi } from "../../contracts/abi.ts";
import { COMMERCE_PAYMENTS } from "../../contracts/commerce-payments.ts";
import hardhatConfig from "../../hardhat.config.ts";
import { deployOperator } from "../../scripts/deploy-operator.ts";
import { readDeploySettings } from "../../scripts/deploy-settings.ts";
import { type Anvil, startAnvil } from "../../scripts/embedded/anvil.ts";
import { installCommercePayments } from "../../scripts/embedded/commerce-payments.ts";
import { devAccount, privateKeyOf } from "../../scripts/embedded/dev-accounts.ts";
import { freePort } from "../../scripts/embedded/ports.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const DEPLOYER = devAccount(0);
const { escrow, collector } = COMMERCE_PAYMENTS;

const folder = mkdtempSync(join(tmpdir(), "deploy-operator-"));
const env = {
  DEPLOYER_PRIVATE_KEY: privateKeyOf(DEPLOYER),
  ARBITER_ADDRESS: devAccount(1).address,
  FEE_RECIPIENT_ADDRESS: devAccount(2).address,
};
const settings = readDeploySettings("localBaseSepolia", env, ROOT);
let chain: Anvil;

beforeAll(async () => {
  chain = await startAnvil({ network: settings.facts, port: await freePort(), options: [] });
});
afterAll(async () => {
  await chain?.process.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function deploy() {
  const { chainId } = settings.facts;
  const localBaseSepolia = { type: "http", chainType: "op", chainId, url: chain.rpcUrl } as const;
  const networks = { ...hardhatConfig.networks, localBaseSepolia };
  const paths = { ignition: join(folder, "ignition") };
  const hre = await createHardhatRuntimeEnvironment({ ...hardhatConfig, networks, paths }, {}, ROOT);
  return deployOperator(hre, settings);
}
const sent = () => chain.client.getTransactionCount({ address: DEPLOYER.address });
/** Code that answers every call with this word. */
const answering = (address: Address) => `0x73${address.slice(2)}5f5260205ff3` as const;

test("a chain without base/commerce-payments is refused", async () => {
  await expect(deploy()).rejects.toThrow(`base/commerce-payments is not at ${escrow}`);
  expect(await sent()).toBe(0);
});

test("an escrow with other hashes is refused", async () => {
  await installCommercePayments(chain.client);
  const bytecode = await chain.client.getCode({ address: escrow });
  await chain.client.setCode({ address: escrow, bytecode: answering(escrow) });
  await expect(deploy()).rejects.toThrow("PAYMENT_INFO_TYPEHASH() of the escrow is");
  await chain.client.setCode({ address: escrow, bytecode: bytecode ?? "0x" });
  expect(await sent()).toBe(0);
});

test("a collector of another escrow is refused", async () => {
  await chain.client.setCode({ address: collector, bytecode: answering(DEPLOYER.address) });
  await expect(deploy()).rejects.toThrow(`authCaptureEscrow() of the collector is ${DEPLOYER.address}`);
  await installCommercePayments(chain.client);
  expect(await sent()).toBe(0);
});

test("it is deployed once, with the roles, and verified with the sources that it was compiled from", async () => {
  const { address, compilerFile } = await deploy();
  expect(await sent()).toBe(1);
  const read = (functionName: "ESCROW" | "COLLECTOR" | "USDC" | "ARBITER" | "FEE_RECIPIENT") =>
    chain.client.readContract({ address, abi: operatorAbi, functionName });
  expect(await Promise.all([read("ESCROW"), read("COLLECTOR"), read("USDC")])).toEqual([
    escrow,
    collector,
    getAddress(settings.facts.usdc.address),
  ]);
  expect(await Promise.all([read("ARBITER"), read("FEE_RECIPIENT")])).toEqual([
    env.ARBITER_ADDRESS,
    env.FEE_RECIPIENT_ADDRESS,
  ]);
  const { input } = JSON.parse(readFileSync(compilerFile, "utf8"));
  expect(Object.keys(input.sources)).toContain("project/contracts/ArbiterOperator.sol");
  expect((await deploy()).address).toBe(address);
  expect(await sent()).toBe(1);
});

test("other code at its address is refused", async () => {
  const { address } = await deploy();
  const code = (await chain.client.getCode({ address })) ?? "0x";
  await chain.client.setCode({ address, bytecode: `0x61${code.slice(4)}` });
  await expect(deploy()).rejects.toThrow("is not this project's operator with these roles");
});
