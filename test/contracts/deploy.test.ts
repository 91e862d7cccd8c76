import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import hre from "hardhat";
import { createHardhatRuntimeEnvironment } from "hardhat/hre";
import { type Address, type Hex, keccak256, parseAbi } from "viem";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { afterAll, describe, expect, test } from "vitest";
import { NETWORKS } from "../../api/platform/networks.ts";
import { COMMERCE_PAYMENTS } from "../../contracts/commerce-payments.ts";
import { LOG_ANCHOR } from "../../contracts/log-anchor.ts";
import { SETTLEMENT_BATCH } from "../../contracts/settlement-batch.ts";
import hardhatConfig from "../../hardhat.config.ts";
import { sendDeployment } from "../../scripts/deploy-chain.ts";
import { CONTRACTS, type ContractName, type Planned, planDeployment } from "../../scripts/deploy-plan.ts";
import { readDeploySettings } from "../../scripts/deploy-settings.ts";
import { startAnvil } from "../../scripts/embedded/anvil.ts";
import { buildContracts } from "../../scripts/embedded/build-contracts.ts";
import { devAccount, privateKeyOf } from "../../scripts/embedded/dev-accounts.ts";
import { installCommercePayments, installCreateX } from "../../scripts/embedded/install-contracts.ts";
import { freePort } from "../../scripts/embedded/ports.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const NAMES = Object.keys(CONTRACTS) as ContractName[];

const port = await freePort();
const env = {
  BASE_SEPOLIA_RPC_PORT: String(port),
  DEPLOYER_PRIVATE_KEY: privateKeyOf(devAccount(0)),
  ARBITER_ADDRESS: devAccount(1).address,
  FEE_RECIPIENT_ADDRESS: devAccount(2).address,
};
const settings = readDeploySettings("localBaseSepolia", env);
const { client, process: node } = await startAnvil({ network: settings.facts, port, options: [] });
afterAll(() => node.stop());
/** The number of transactions that the deployer has sent. */
const sent = () => client.getTransactionCount({ address: devAccount(0).address });

const plan = () => planDeployment(hre, client, settings.roles);
/** Runs the deployment and returns the planned contracts afterwards. */
async function deploy(privateKey: Hex = privateKeyOf(devAccount(0))): Promise<Readonly<Record<ContractName, Planned>>> {
  const missing = (await plan()).filter(({ isDeployed, obstacle }) => !isDeployed && obstacle === null);
  if (missing.length > 0) await sendDeployment(client, { ...settings, privateKey }, missing);
  const found = (await plan()).map((one) => [one.name, one] as const);
  return Object.fromEntries(found) as Record<ContractName, Planned>;
}

/** Runs `npm run deploy` as a program. */
const run = (args: readonly string[], changed: Readonly<Record<string, string>> = {}) =>
  new Promise<{ readonly code: number; readonly output: string; readonly errors: string }>((resolve) => {
    const own = { PATH: process.env.PATH ?? "", ...env, ...changed };
    const command = [join(ROOT, "scripts/deploy.ts"), "--network", "localBaseSepolia", ...args];
    execFile(process.execPath, command, { env: own, cwd: ROOT }, (error, output, errors) =>
      resolve({ code: error === null ? 0 : Number(error.code), output, errors }),
    );
  });

describe("a deployment", () => {
  const { escrow, collector } = COMMERCE_PAYMENTS;
  /** Code that returns this word from every call. */
  const answering = (address: Address) => `0x73${address.slice(2)}5f5260205ff3` as const;
  const operatorsObstacle = async () => (await plan()).find(({ name }) => name === "operator")?.obstacle;

  test("It needs a chain with CreateX", async () => {
    await expect(plan()).rejects.toThrow("The chain has no CreateX at 0xba5Ed");
    await installCreateX(client);
  });

  test("A dry run lists it, needs no key, and sends nothing", async () => {
    const { code, output, errors } = await run(["--dry-run"], { DEPLOYER_PRIVATE_KEY: "" });
    expect([code, errors]).toEqual([0, ""]);
    expect(output.match(/would be deployed/g)).toHaveLength(4);
    expect(output).toMatch(/\n4 transactions would be sent: \d{7} gas, about 0\.\d+ ETH at the current price\.\n$/);
    expect(await sent()).toBe(0);
  });

  test("It is refused with the account and the amount if the deployer lacks ETH", async () => {
    const key = generatePrivateKey();
    await expect(deploy(key)).rejects.toThrow(
      `The deployer ${privateKeyToAddress(key)} holds 0 ETH on Base Sepolia, but needs about 0.`,
    );
  });

  test("Without base/commerce-payments it omits only the operator", async () => {
    const deployed = await deploy();
    expect(await sent()).toBe(4);
    expect(NAMES.filter((name) => !deployed[name].isDeployed)).toEqual(["operator"]);
    expect(deployed.operator.obstacle).toContain(`base/commerce-payments is not at ${escrow}`);
  });

  test("It omits the operator if the escrow has other hashes or its collector belongs to another escrow", async () => {
    await installCommercePayments(client);
    const bytecode = (await client.getCode({ address: escrow })) ?? "0x";
    await client.setCode({ address: escrow, bytecode: answering(escrow) });
    expect(await operatorsObstacle()).toContain("PAYMENT_INFO_TYPEHASH() of the escrow is");
    await client.setCode({ address: escrow, bytecode });
    await client.setCode({ address: collector, bytecode: answering(devAccount(0).address) });
    expect(await operatorsObstacle()).toContain(`authCaptureEscrow() of the collector is ${devAccount(0).address}`);
    await installCommercePayments(client);
  });

  test("It adds the operator later, with the expected roles and code", async () => {
    const deployed = await deploy();
    expect(await sent()).toBe(5);
    const { usdc, arbiter, feeRecipient } = settings.roles;
    const abi = parseAbi([
      "function USDC() view returns (address)",
      "function ARBITER() view returns (address)",
      "function FEE_RECIPIENT() view returns (address)",
      "function ESCROW() view returns (address)",
      "function COLLECTOR() view returns (address)",
    ]);
    const read = (name: ContractName, functions: readonly (typeof abi)[number]["name"][]) =>
      Promise.all(
        functions.map((functionName) => client.readContract({ address: deployed[name].address, abi, functionName })),
      );
    expect(await read("escrow", ["USDC", "ARBITER", "FEE_RECIPIENT"])).toEqual([usdc, arbiter, feeRecipient]);
    expect(await read("evaluator", ["ARBITER", "FEE_RECIPIENT"])).toEqual([arbiter, feeRecipient]);
    expect(await read("operator", ["ESCROW", "COLLECTOR", "USDC", "ARBITER", "FEE_RECIPIENT"])).toEqual([
      ...[escrow, collector, usdc, arbiter, feeRecipient],
    ]);
    for (const { address, codeHash } of [SETTLEMENT_BATCH, LOG_ANCHOR])
      expect(keccak256((await client.getCode({ address })) ?? "0x")).toBe(codeHash);
    expect([deployed.batch.address, deployed.anchor.address]).toEqual([SETTLEMENT_BATCH.address, LOG_ANCHOR.address]);
  });

  test("Another checkout finds it, sends nothing, and prints the lines to paste", async () => {
    const { code, output, errors } = await run([], { DEPLOYER_PRIVATE_KEY: privateKeyOf(devAccount(3)) });
    expect([code, errors]).toEqual([0, ""]);
    expect(output.match(/ was already deployed$/gm)).toHaveLength(5);
    expect(output).toContain("\n0 transactions were sent.");
    const { escrow: own, operator, evaluator } = await deploy();
    const [, first = ""] = /^ESCROW_START_BLOCK=(\d+)$/m.exec(output) ?? [];
    expect(output).toMatch(
      new RegExp(`\nESCROW_ADDRESSES=${own.address},${operator.address}\nEVALUATOR_ADDRESS=${evaluator.address}\n`),
    );
    const isThereAt = async (blockNumber: bigint) =>
      (await client.getCode({ address: own.address, blockNumber })) !== undefined;
    expect([await isThereAt(BigInt(first) - 1n), await isThereAt(BigInt(first))]).toEqual([false, true]);
    expect(await sent()).toBe(5);
  });

  test("An explorer can verify it with the sources that it was compiled from", async () => {
    for (const { name, compilerFile } of await plan()) {
      const { input } = JSON.parse(readFileSync(compilerFile, "utf8"));
      expect(Object.keys(input.sources)).toContain(`project/contracts/${CONTRACTS[name].contract}.sol`);
    }
  });

  test.each(NAMES)("It is refused if the %s's address has other code", async (name) => {
    const { address } = (await deploy())[name];
    const bytecode = (await client.getCode({ address })) ?? "0x";
    await client.setCode({ address, bytecode: `0x61${bytecode.slice(4)}` });
    await expect(plan()).rejects.toThrow(`is not this project's ${name} with these roles`);
    await client.setCode({ address, bytecode });
    expect(await sent()).toBe(5);
  });

  test("It has other addresses with another role", async () => {
    const others = { ...settings.roles, arbiter: devAccount(4).address };
    const planned = await planDeployment(hre, client, others);
    expect(planned.filter(({ isDeployed }) => isDeployed).map(({ name }) => name)).toEqual(["batch", "anchor"]);
  });
});

test("A comment in a contract's sources does not change its code or its address", async () => {
  const root = mkdtempSync(join(tmpdir(), "deploy-"));
  try {
    for (const file of ["interfaces/IEscrow.sol", "interfaces/IUsdc.sol"])
      cpSync(join(ROOT, "contracts", file), join(root, "contracts", file));
    writeFileSync(join(root, "package.json"), JSON.stringify({ name: "checkout", type: "module" }));
    const source = readFileSync(join(ROOT, "contracts/Escrow.sol"), "utf8");
    writeFileSync(join(root, "contracts/Escrow.sol"), `${source}\n// Another comment.\n`);
    const other = await createHardhatRuntimeEnvironment(hardhatConfig, {}, root);
    await buildContracts(other);
    const [ours, theirs] = await Promise.all([hre, other].map(({ artifacts }) => artifacts.readArtifact("Escrow")));
    expect(theirs?.bytecode).toBe(ours?.bytecode);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});

const ENVIRONMENT = {
  BASE_RPC_URL: "http://127.0.0.1:1",
  BASE_SEPOLIA_RPC_URL: "http://127.0.0.1:1",
  DEPLOYER_PRIVATE_KEY: privateKeyOf(devAccount(0)),
  ARBITER_ADDRESS: devAccount(1).address,
  FEE_RECIPIENT_ADDRESS: devAccount(2).address,
};

describe("the settings of a deployment", () => {
  test.each([
    ["base", "eip155:8453"],
    ["baseSepolia", "eip155:84532"],
    ["localBase", "eip155:8453"],
    ["localBaseSepolia", "eip155:84532"],
  ] as const)("On %s the token is the network's own USDC", (name, id) => {
    const { roles, facts } = readDeploySettings(name, ENVIRONMENT);
    expect(facts).toBe(NETWORKS[id]);
    expect(roles.usdc.toLowerCase()).toBe(NETWORKS[id].usdc.address.toLowerCase());
    expect(roles).toMatchObject({ arbiter: devAccount(1).address, feeRecipient: devAccount(2).address });
  });

  test("Every missing setting is named", () => {
    const refused = () => readDeploySettings("base", {});
    for (const name of Object.keys(ENVIRONMENT).filter((variable) => variable !== "BASE_SEPOLIA_RPC_URL"))
      expect(refused).toThrow(name);
    expect(refused).toThrow("ignition/parameters/base.json");
  });

  test.each([
    ["ARBITER_ADDRESS", "0x0000000000000000000000000000000000000000"],
    ["FEE_RECIPIENT_ADDRESS", "0x1234"],
    ["DEPLOYER_PRIVATE_KEY", "0x1234"],
    ["BASE_RPC_URL", "mainnet"],
  ])("An invalid %s is named", (variable, value) => {
    expect(() => readDeploySettings("base", { ...ENVIRONMENT, [variable]: value })).toThrow(variable);
  });

  test.each([undefined, "mainnet", "toString"])("The network %s is refused", (name) => {
    expect(() => readDeploySettings(name, ENVIRONMENT)).toThrow("one of base, baseSepolia");
  });
});
