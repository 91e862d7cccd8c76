import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { NETWORKS } from "../../api/platform/networks.ts";
import { readDeploySettings } from "../../scripts/deploy-settings.ts";
import { devAccount, privateKeyOf } from "../../scripts/embedded/dev-accounts.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
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
