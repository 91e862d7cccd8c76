import hre from "hardhat";
import { type Hex, toFunctionSelector } from "viem";
import { describe, expect, test } from "vitest";
import { escrowAbi, operatorAbi } from "../../contracts/abi.ts";
import { type AbiItem, opcodesIn, sortedAbi } from "./artifact.ts";

const { abi, deployedBytecode } = await hre.artifacts.readArtifact("ArbiterOperator");
const items = abi as readonly AbiItem[];
const namesOf = (wanted: (item: AbiItem) => boolean) =>
  items
    .filter(wanted)
    .map(({ name }) => name)
    .toSorted();

describe("the operator's interface", () => {
  test("contracts/abi.ts is what the compiler makes", () => {
    expect(sortedAbi(items)).toHaveLength(operatorAbi.length);
    expect(sortedAbi(operatorAbi)).toEqual(sortedAbi(items));
  });

  test("three functions change something, and none of them is for an administrator", () => {
    const isChanging = ({ type, stateMutability }: AbiItem) => type === "function" && stateMutability !== "view";
    expect(namesOf(isChanging)).toEqual(["authorize", "refund", "release"]);
  });

  test("what it shares with the escrow is the same to the letter", () => {
    const isShared = ({ type, name }: AbiItem) =>
      type !== "constructor" && items.some((item) => item.type === type && item.name === name);
    const own = ["COLLECTOR", "ESCROW", "FEE_IS_AMOUNT"];
    const shared = sortedAbi((escrowAbi as readonly AbiItem[]).filter(isShared));
    expect(shared).toEqual(
      sortedAbi(items.filter(({ type, name = "" }) => type !== "constructor" && !own.includes(name))),
    );
  });

  test("it takes no ETH and has no fallback", () => {
    expect(items.filter(({ type }) => type === "fallback" || type === "receive")).toEqual([]);
    expect(items.filter(({ stateMutability }) => stateMutability === "payable")).toEqual([]);
  });

  test("its code delegates to no other code, creates no contract and cannot destroy itself", () => {
    const code = deployedBytecode as Hex;
    expect(opcodesIn(code, ["CALL", "SSTORE"])).toEqual(["CALL", "SSTORE"]);
    expect(opcodesIn(code, ["CREATE", "CALLCODE", "DELEGATECALL", "CREATE2", "SELFDESTRUCT"])).toEqual([]);
  });

  test("of the escrow that holds payments it calls authorize, capture, void and paymentState alone", () => {
    const terms = "(address,address,address,address,uint120,uint48,uint48,uint48,uint16,uint16,address,uint256)";
    const pushed = (signature: string) => deployedBytecode.includes(toFunctionSelector(signature).slice(2));
    const called = [
      `authorize(${terms},uint256,address,bytes)`,
      `capture(${terms},uint256,uint16,address)`,
      `capture(${terms},uint256,uint256,address)`,
      `void(${terms})`,
      "paymentState(bytes32)",
    ];
    expect(called.filter((signature) => !pushed(signature))).toEqual([]);
    const never = [
      `charge(${terms},uint256,address,bytes,uint16,address)`,
      `refund(${terms},uint256,address,bytes)`,
      `reclaim(${terms})`,
    ];
    expect(never.filter(pushed)).toEqual([]);
  });
});
