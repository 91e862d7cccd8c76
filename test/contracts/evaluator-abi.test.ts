import hre from "hardhat";
import { type Hex, toFunctionSelector } from "viem";
import { describe, expect, test } from "vitest";
import { evaluatorAbi } from "../../packages/escrow/src/evaluator-abi.ts";
import { type AbiItem, opcodesIn, sortedAbi } from "./artifact.ts";

const { abi, deployedBytecode } = await hre.artifacts.readArtifact("ArbiterEvaluator");
const hand = await hre.artifacts.readArtifact("EvaluatorHand");
const items = abi as readonly AbiItem[];

describe("the evaluator's interface", () => {
  test("packages/escrow has what the compiler makes", () => {
    expect(sortedAbi(items)).toHaveLength(evaluatorAbi.length);
    expect(sortedAbi(evaluatorAbi)).toEqual(sortedAbi(items));
  });

  test("two functions change something, and none of them is for an administrator", () => {
    const isChanging = ({ type, stateMutability }: AbiItem) => type === "function" && stateMutability !== "view";
    expect(items.filter(isChanging).map(({ name }) => name)).toEqual(["evaluate", "sweep"]);
    expect(opcodesIn(deployedBytecode as Hex, ["SSTORE", "DELEGATECALL", "SELFDESTRUCT"])).toEqual([]);
    expect(opcodesIn(hand.deployedBytecode as Hex, ["SSTORE", "DELEGATECALL", "SELFDESTRUCT"])).toEqual([]);
  });

  test("of a job contract it calls complete and reject alone, and reads no job", () => {
    const pushed = (signature: string) => deployedBytecode.includes(toFunctionSelector(signature).slice(2));
    const decisions = ["complete(uint256,bytes32,bytes)", "reject(uint256,bytes32,bytes)"];
    expect(decisions.filter((signature) => !pushed(signature))).toEqual([]);
    const readers = ["getJob(uint256)", "jobs(uint256)", "job(uint256)", "statusOf(uint256)", "claimRefund(uint256)"];
    expect(readers.filter(pushed)).toEqual([]);
  });
});
