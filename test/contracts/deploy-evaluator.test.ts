import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createHardhatRuntimeEnvironment } from "hardhat/hre";
import { parseAbi } from "viem";
import { afterAll, beforeAll, expect, test } from "vitest";
import hardhatConfig from "../../hardhat.config.ts";
import { deployEvaluator } from "../../scripts/deploy-evaluator.ts";
import { readDeploySettings } from "../../scripts/deploy-settings.ts";
import { type Anvil, startAnvil } from "../../scripts/embedded/anvil.ts";
import { devAccount, privateKeyOf } from "../../scripts/embedded/dev-accounts.ts";
import { freePort } from "../../scripts/embedded/ports.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const DEPLOYER = devAccount(0);
const GETTERS = parseAbi([
  "function ARBITER() view returns (address)",
  "function FEE_RECIPIENT() view returns (address)",
]);

const folder = mkdtempSync(join(tmpdir(), "deploy-evaluator-"));
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
  return deployEvaluator(hre, settings);
}
const sent = () => chain.client.getTransactionCount({ address: DEPLOYER.address });
test("it is deployed once, with the roles, and verified with the sources that it was compiled from", async () => {
  const { address, compilerFile } = await deploy();
  expect(await sent()).toBe(1);
  const read = (functionName: "ARBITER" | "FEE_RECIPIENT") =>
    chain.client.readContract({ address, abi: GETTERS, functionName });
  expect(await Promise.all([read("ARBITER"), read("FEE_RECIPIENT")])).toEqual([
    env.ARBITER_ADDRESS,
    env.FEE_RECIPIENT_ADDRESS,
  ]);
  const { input } = JSON.parse(readFileSync(compilerFile, "utf8"));
  expect(Object.keys(input.sources)).toContain("project/contracts/EvaluatorHand.sol");
  expect((await deploy()).address).toBe(address);
  expect(await sent()).toBe(1);
});

test("other code at its address is refused", async () => {
  const { address } = await deploy();
  const code = (await chain.client.getCode({ address })) ?? "0x";
  await chain.client.setCode({ address, bytecode: `0x61${code.slice(4)}` });
  await expect(deploy()).rejects.toThrow("is not this project's evaluator with these roles");
});
