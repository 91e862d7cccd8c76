import hre from "hardhat";
import type { Abi } from "viem";
import { expect, test } from "vitest";
import { identityRegistryAbi, reputationRegistryAbi, validationRegistryAbi } from "../../contracts/erc8004.ts";
import { type AbiItem, sortedAbi } from "./artifact.ts";

test.each([
  ["IdentityRegistry", identityRegistryAbi],
  ["ReputationRegistry", reputationRegistryAbi],
  ["ValidationRegistry", validationRegistryAbi],
])("what contracts/erc8004.ts says of the %s is what its stand-in has", async (name, ours: Abi) => {
  const { abi } = await hre.artifacts.readArtifact(name);
  const wanted = ours as readonly AbiItem[];
  const known = (abi as readonly AbiItem[]).filter((item) =>
    wanted.some((one) => one.type === item.type && one.name === item.name),
  );
  expect(known).toHaveLength(ours.length);
  expect(sortedAbi(known)).toEqual(sortedAbi(wanted));
});
