import { readFileSync } from "node:fs";
import { parseAbi } from "viem";
import { expect, test } from "vitest";
import { deployEvaluator } from "../../scripts/deploy-evaluator.ts";
import { prepareDeployment } from "./deployment-ground.ts";

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
