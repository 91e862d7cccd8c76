import hre from "hardhat";
import type { Hex } from "viem";
import { describe, expect, test } from "vitest";
import { settlementBatchAbi } from "../../contracts/settlement-batch.ts";
import { type AbiItem, opcodesIn, sortedAbi } from "./artifact.ts";

const { abi, deployedBytecode } = await hre.artifacts.readArtifact("SettlementBatch");
const items = abi as readonly AbiItem[];

describe("the interface of the settlement batch", () => {
  test("contracts/settlement-batch.ts is what the compiler makes", () => {
    expect(sortedAbi(items)).toHaveLength(settlementBatchAbi.length);
    expect(sortedAbi(settlementBatchAbi)).toEqual(sortedAbi(items));
  });

  test("it has two functions, which take no ETH, and no constructor", () => {
    const others = items.filter(({ type }) => type !== "event" && type !== "error");
    const functions = ["hold", "settle"].map((name) =>
      expect.objectContaining({ name, stateMutability: "nonpayable" }),
    );
    expect(others).toEqual(functions);
  });

  test("its code calls, and neither stores anything nor runs other code as its own", () => {
    const code = deployedBytecode as Hex;
    expect(opcodesIn(code, ["CALL"])).toEqual(["CALL"]);
    expect(opcodesIn(code, ["SLOAD", "SSTORE", "TLOAD", "TSTORE"])).toEqual([]);
    expect(opcodesIn(code, ["CREATE", "CALLCODE", "DELEGATECALL", "CREATE2", "SELFDESTRUCT"])).toEqual([]);
  });
});
