import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Address, getAddress, getCreate2Address, keccak256, parseAbi } from "viem";
import { describe, expect, test } from "vitest";
import { NETWORKS } from "../../api/platform/networks.ts";
import { operatorAbi } from "../../contracts/abi.ts";
import { COMMERCE_PAYMENTS } from "../../contracts/commerce-payments.ts";
import { CREATEX, SETTLEMENT_BATCH } from "../../contracts/settlement-batch.ts";
import { deployEvaluator } from "../../scripts/deploy-evaluator.ts";
import { deployOperator } from "../../scripts/deploy-operator.ts";
import { readDeploySettings } from "../../scripts/deploy-settings.ts";
import { deploySettlementBatch } from "../../scripts/deploy-shared.ts";
import { installCommercePayments } from "../../scripts/embedded/commerce-payments.ts";
import { installCreateX } from "../../scripts/embedded/createx.ts";
import { devAccount, privateKeyOf } from "../../scripts/embedded/dev-accounts.ts";
import { artifactOf } from "../support/chain/contracts.ts";
import { prepareDeployment } from "./deployment-ground.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

describe("the evaluator", () => {
  const GETTERS = parseAbi([
    "function ARBITER() view returns (address)",
    "function FEE_RECIPIENT() view returns (address)",
  ]);

  const { settings, roles, client, sent, hardhat } = prepareDeployment("localBaseSepolia");
  const deploy = async () => deployEvaluator(await hardhat(), settings);

  test("it is deployed once, with the roles, and verified with the sources that it was compiled from", async () => {
    const { address, compilerFile } = await deploy();
    expect(await sent()).toBe(1);
    const read = (functionName: "ARBITER" | "FEE_RECIPIENT") =>
      client().readContract({ address, abi: GETTERS, functionName });
    expect(await Promise.all([read("ARBITER"), read("FEE_RECIPIENT")])).toEqual([
      roles.ARBITER_ADDRESS,
      roles.FEE_RECIPIENT_ADDRESS,
    ]);
    const { input } = JSON.parse(readFileSync(compilerFile, "utf8"));
    expect(Object.keys(input.sources)).toContain("project/contracts/EvaluatorHand.sol");
    expect((await deploy()).address).toBe(address);
    expect(await sent()).toBe(1);
  });

  test("other code at its address is refused", async () => {
    const { address } = await deploy();
    const code = (await client().getCode({ address })) ?? "0x";
    await client().setCode({ address, bytecode: `0x61${code.slice(4)}` });
    await expect(deploy()).rejects.toThrow("is not this project's evaluator with these roles");
  });
});

describe("the operator", () => {
  const { escrow, collector } = COMMERCE_PAYMENTS;
  /** An address that is no escrow's. */
  const OTHER = devAccount(0).address;

  const { settings, roles, client, sent, hardhat } = prepareDeployment("localBaseSepolia");
  const deploy = async () => deployOperator(await hardhat(), settings);
  /** Code that answers every call with this word. */
  const answering = (address: Address) => `0x73${address.slice(2)}5f5260205ff3` as const;

  test("a chain without base/commerce-payments is refused", async () => {
    await expect(deploy()).rejects.toThrow(`base/commerce-payments is not at ${escrow}`);
    expect(await sent()).toBe(0);
  });

  test("an escrow with other hashes is refused", async () => {
    await installCommercePayments(client());
    const bytecode = await client().getCode({ address: escrow });
    await client().setCode({ address: escrow, bytecode: answering(escrow) });
    await expect(deploy()).rejects.toThrow("PAYMENT_INFO_TYPEHASH() of the escrow is");
    await client().setCode({ address: escrow, bytecode: bytecode ?? "0x" });
    expect(await sent()).toBe(0);
  });

  test("a collector of another escrow is refused", async () => {
    await client().setCode({ address: collector, bytecode: answering(OTHER) });
    await expect(deploy()).rejects.toThrow(`authCaptureEscrow() of the collector is ${OTHER}`);
    await installCommercePayments(client());
    expect(await sent()).toBe(0);
  });

  test("it is deployed once, with the roles, and verified with the sources that it was compiled from", async () => {
    const { address, compilerFile } = await deploy();
    expect(await sent()).toBe(1);
    const read = (functionName: "ESCROW" | "COLLECTOR" | "USDC" | "ARBITER" | "FEE_RECIPIENT") =>
      client().readContract({ address, abi: operatorAbi, functionName });
    expect(await Promise.all([read("ESCROW"), read("COLLECTOR"), read("USDC")])).toEqual([
      escrow,
      collector,
      getAddress(settings.facts.usdc.address),
    ]);
    expect(await Promise.all([read("ARBITER"), read("FEE_RECIPIENT")])).toEqual([
      roles.ARBITER_ADDRESS,
      roles.FEE_RECIPIENT_ADDRESS,
    ]);
    const { input } = JSON.parse(readFileSync(compilerFile, "utf8"));
    expect(Object.keys(input.sources)).toContain("project/contracts/ArbiterOperator.sol");
    expect((await deploy()).address).toBe(address);
    expect(await sent()).toBe(1);
  });

  test("other code at its address is refused", async () => {
    const { address } = await deploy();
    const code = (await client().getCode({ address })) ?? "0x";
    await client().setCode({ address, bytecode: `0x61${code.slice(4)}` });
    await expect(deploy()).rejects.toThrow("is not this project's operator with these roles");
  });
});

describe("the settlement batch", () => {
  const { address, codeHash, salt } = SETTLEMENT_BATCH;

  test("the address and the code hash are those of the compiler's output", async () => {
    const { bytecode, deployedBytecode } = artifactOf("SettlementBatch");
    expect(keccak256(deployedBytecode)).toBe(codeHash);
    // CreateX hashes a salt that names no deployer.
    expect(getCreate2Address({ from: CREATEX, salt: keccak256(salt), bytecode })).toBe(address);
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
});

const ENVIRONMENT = {
  BASE_RPC_URL: "http://127.0.0.1:1",
  BASE_SEPOLIA_RPC_URL: "http://127.0.0.1:1",
  DEPLOYER_PRIVATE_KEY: privateKeyOf(devAccount(0)),
  ARBITER_ADDRESS: devAccount(1).address,
  FEE_RECIPIENT_ADDRESS: devAccount(2).address,
};

describe("what a deployment of the escrow needs", () => {
  test.each([
    ["base", "eip155:8453"],
    ["baseSepolia", "eip155:84532"],
    ["localBase", "eip155:8453"],
    ["localBaseSepolia", "eip155:84532"],
  ] as const)("on %s the token is the network's own USDC", (name, id) => {
    const { roles, facts } = readDeploySettings(name, ENVIRONMENT, ROOT);
    expect(facts).toBe(NETWORKS[id]);
    expect(roles.usdc.toLowerCase()).toBe(NETWORKS[id].usdc.address.toLowerCase());
    expect(roles).toMatchObject({ arbiter: devAccount(1).address, feeRecipient: devAccount(2).address });
  });

  test("everything that is missing is named at once", () => {
    const refused = () => readDeploySettings("base", {}, ROOT);
    for (const name of Object.keys(ENVIRONMENT).filter((variable) => variable !== "BASE_SEPOLIA_RPC_URL"))
      expect(refused).toThrow(name);
    expect(refused).toThrow("ignition/parameters/base.json");
  });

  test.each([
    ["ARBITER_ADDRESS", "0x0000000000000000000000000000000000000000"],
    ["FEE_RECIPIENT_ADDRESS", "0x1234"],
    ["DEPLOYER_PRIVATE_KEY", "0x1234"],
  ])("a wrong %s is refused by name", (variable, value) => {
    expect(() => readDeploySettings("base", { ...ENVIRONMENT, [variable]: value }, ROOT)).toThrow(variable);
  });

  test.each([undefined, "mainnet", "toString"])("the network %s is unknown", (name) => {
    expect(() => readDeploySettings(name, ENVIRONMENT, ROOT)).toThrow("one of base, baseSepolia");
  });
});
