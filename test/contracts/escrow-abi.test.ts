import { readFileSync } from "node:fs";
import hre from "hardhat";
import type { Hex } from "viem";
import { describe, expect, test } from "vitest";
import { escrowAbi } from "../../contracts/abi.ts";

interface Item {
  readonly type: string;
  readonly name?: string;
  readonly stateMutability?: string;
}

const { abi, deployedBytecode } = await hre.artifacts.readArtifact("Escrow");
const items = abi as readonly Item[];
const namesOf = (wanted: (item: Item) => boolean) =>
  items
    .filter(wanted)
    .map(({ name }) => name)
    .toSorted();

/** In one order, without what only one side writes: the compiler's own types, empty names and what an event does not index. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  const isSaid = ([key, inner]: readonly [string, unknown]) =>
    key !== "internalType" && inner !== "" && !(["anonymous", "indexed"].includes(key) && inner === false);
  const entries = Object.entries(value).filter(isSaid);
  const sorted = entries.toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(sorted.map(([key, inner]) => [key, plain(inner)]));
}

/** The instructions of the code, without the data that PUSH carries and the metadata at the end. */
function instructionsOf(code: Hex): ReadonlySet<number> {
  const bytes = Buffer.from(code.slice(2), "hex");
  const end = bytes.length - bytes.readUInt16BE(bytes.length - 2) - 2;
  const seen = new Set<number>();
  for (let at = 0; at < end; at++) {
    const opcode = bytes[at] ?? 0;
    seen.add(opcode);
    if (opcode >= 0x60 && opcode <= 0x7f) at += opcode - 0x5f;
  }
  return seen;
}

describe("the escrow's interface", () => {
  test("contracts/abi.ts is what the compiler makes", () => {
    const sorted = (list: readonly unknown[]) => list.map((item) => JSON.stringify(plain(item))).toSorted();
    expect(sorted(items)).toHaveLength(escrowAbi.length);
    expect(sorted(escrowAbi)).toEqual(sorted(items));
  });

  test("four functions change something, and none of them is for an administrator", () => {
    const changing = (item: Item) => item.type === "function" && item.stateMutability !== "view";
    expect(namesOf(changing)).toEqual(["authorize", "refund", "release", "withdraw"]);
    expect(namesOf((item) => item.type === "function" && !changing(item))).toEqual([
      "ARBITER",
      "DOMAIN_SEPARATOR",
      "FEE_RECIPIENT",
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
    const seen = instructionsOf(deployedBytecode as Hex);
    const CALL = 0xf1;
    const forbidden = { CREATE: 0xf0, CALLCODE: 0xf2, DELEGATECALL: 0xf4, CREATE2: 0xf5, SELFDESTRUCT: 0xff };
    expect(seen.has(CALL)).toBe(true);
    expect(Object.entries(forbidden).filter(([, opcode]) => seen.has(opcode))).toEqual([]);
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
