import { readFileSync } from "node:fs";
import hre from "hardhat";
import type { Hex } from "viem";
import { describe, expect, test } from "vitest";
import { escrowAbi } from "../../contracts/abi.ts";
import { type AbiItem, opcodesIn, sortedAbi } from "./artifact.ts";

const { abi, deployedBytecode } = await hre.artifacts.readArtifact("Escrow");
const items = abi as readonly AbiItem[];
const namesOf = (wanted: (item: AbiItem) => boolean) =>
  items
    .filter(wanted)
    .map(({ name }) => name)
    .toSorted();

describe("the escrow's interface", () => {
  test("contracts/abi.ts is what the compiler makes", () => {
    expect(sortedAbi(items)).toHaveLength(escrowAbi.length);
    expect(sortedAbi(escrowAbi)).toEqual(sortedAbi(items));
  });

  test("four functions change something, and none of them is for an administrator", () => {
    const changing = (item: AbiItem) => item.type === "function" && item.stateMutability !== "view";
    expect(namesOf(changing)).toEqual(["authorize", "refund", "release", "withdraw"]);
    expect(namesOf((item) => item.type === "function" && !changing(item))).toEqual([
      "ARBITER",
      "DOMAIN_SEPARATOR",
      "FEE_RECIPIENT",
      "MINIMUM",
      "PAYMENT_INFO_TYPEHASH",
      "USDC",
      "VERDICT_TYPEHASH",
      "getHash",
      "getPayerAgnosticHash",
      "owed",
      "payments",
    ]);
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

  test("receiveWithAuthorization is the only authorization that it submits", () => {
    const source = readFileSync(new URL("../../contracts/Escrow.sol", import.meta.url), "utf8");
    expect(source.match(/IUsdc\(USDC\)\.(\w+)/g)?.map((call) => call.split(".")[1])).toEqual([
      "receiveWithAuthorization",
      "transfer",
      "transfer",
    ]);
  });
});
