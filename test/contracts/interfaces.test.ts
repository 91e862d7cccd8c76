import { type Abi, type Hex, toFunctionSelector } from "viem";
import { describe, expect, test } from "vitest";
import { escrowAbi, operatorAbi } from "../../contracts/abi.ts";
import { identityRegistryAbi, reputationRegistryAbi, validationRegistryAbi } from "../../contracts/erc8004.ts";
import { logAnchorAbi } from "../../contracts/log-anchor.ts";
import { settlementBatchAbi } from "../../contracts/settlement-batch.ts";
import { evaluatorAbi } from "../../packages/escrow/src/evaluator.ts";
import { artifactOf } from "../support/chain/contracts.ts";

/** An entry of an ABI, as the compiler writes it. */
interface AbiItem {
  readonly type: string;
  readonly name?: string;
  readonly stateMutability?: string;
}

/** An ABI in a fixed order, without members that only the compiler or only viem writes. */
const sortedAbi = (items: readonly unknown[]): readonly string[] =>
  items.map((item) => JSON.stringify(plain(item))).toSorted();

/** Sorts keys and drops the compiler's own types, empty names, and flags that are false. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  const isKept = ([key, inner]: readonly [string, unknown]) =>
    key !== "internalType" && inner !== "" && !(["anonymous", "indexed"].includes(key) && inner === false);
  const entries = Object.entries(value).filter(isKept);
  const sorted = entries.toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(sorted.map(([key, inner]) => [key, plain(inner)]));
}

const OPCODES = {
  SLOAD: 0x54,
  SSTORE: 0x55,
  TLOAD: 0x5c,
  TSTORE: 0x5d,
  CREATE: 0xf0,
  CALL: 0xf1,
  CALLCODE: 0xf2,
  DELEGATECALL: 0xf4,
  CREATE2: 0xf5,
  SELFDESTRUCT: 0xff,
} as const;
type Opcode = keyof typeof OPCODES;

/** Returns the opcodes of the list that are in the runtime code, ignoring PUSH data and the metadata at the end. */
function opcodesIn(code: Hex, wanted: readonly Opcode[]): readonly Opcode[] {
  const bytes = Buffer.from(code.slice(2), "hex");
  const end = bytes.length - bytes.readUInt16BE(bytes.length - 2) - 2;
  const seen = new Set<number>();
  for (let at = 0; at < end; at++) {
    const opcode = bytes[at] ?? 0;
    seen.add(opcode);
    if (opcode >= 0x60 && opcode <= 0x7f) at += opcode - 0x5f;
  }
  return wanted.filter((name) => seen.has(OPCODES[name]));
}

const itemsOf = (name: string) => artifactOf(name).abi as readonly AbiItem[];
const isChanging = ({ type, stateMutability }: AbiItem) => type === "function" && stateMutability !== "view";
const pushedBy = (name: string) => (signature: string) =>
  artifactOf(name).deployedBytecode.includes(toFunctionSelector(signature).slice(2));

test.each<[string, Abi]>([
  ["Escrow", escrowAbi],
  ["ArbiterOperator", operatorAbi],
  ["ArbiterEvaluator", evaluatorAbi],
  ["SettlementBatch", settlementBatchAbi],
  ["LogAnchor", logAnchorAbi],
])("The published ABI of %s is the compiler's", (name, published) => {
  expect(sortedAbi(itemsOf(name))).toHaveLength(published.length);
  expect(sortedAbi(published)).toEqual(sortedAbi(itemsOf(name)));
});

test.each<[string, Abi]>([
  ["IdentityRegistry", identityRegistryAbi],
  ["ReputationRegistry", reputationRegistryAbi],
  ["ValidationRegistry", validationRegistryAbi],
])("contracts/erc8004.ts names only functions and events of the stand-in of the %s", (name, ours) => {
  const wanted = ours as readonly AbiItem[];
  const known = itemsOf(name).filter((item) => wanted.some((one) => one.type === item.type && one.name === item.name));
  expect(known).toHaveLength(ours.length);
  expect(sortedAbi(known)).toEqual(sortedAbi(wanted));
});

test.each([
  ["Escrow", ["authorize", "refund", "release", "withdraw"]],
  ["ArbiterOperator", ["authorize", "refund", "release"]],
  ["ArbiterEvaluator", ["evaluate", "sweep"]],
  ["SettlementBatch", ["hold", "settle"]],
])("The state-changing functions of %s are %j, so it has no administrator", (name, functions) => {
  expect(
    itemsOf(name)
      .filter(isChanging)
      .map((item) => item.name)
      .toSorted(),
  ).toEqual(functions);
});

describe.each(["Escrow", "ArbiterOperator", "SettlementBatch"])("%s", (name) => {
  test("It takes no ETH and has no fallback", () => {
    expect(itemsOf(name).filter(({ type }) => type === "fallback" || type === "receive")).toEqual([]);
    expect(itemsOf(name).filter(({ stateMutability }) => stateMutability === "payable")).toEqual([]);
  });

  test("It delegates to no other code, creates no contract, and cannot destroy itself", () => {
    const code = artifactOf(name).deployedBytecode;
    expect(opcodesIn(code, ["CALL"])).toEqual(["CALL"]);
    expect(opcodesIn(code, ["CREATE", "CALLCODE", "DELEGATECALL", "CREATE2", "SELFDESTRUCT"])).toEqual([]);
  });
});

test("The settlement batch stores nothing", () => {
  const code = artifactOf("SettlementBatch").deployedBytecode;
  expect(opcodesIn(code, ["SLOAD", "SSTORE", "TLOAD", "TSTORE"])).toEqual([]);
  expect(opcodesIn(artifactOf("Escrow").deployedBytecode, ["SSTORE"])).toEqual(["SSTORE"]);
});

test.each(["ArbiterEvaluator", "EvaluatorHand"])("%s stores nothing and delegates to no other code", (name) => {
  const code = artifactOf(name).deployedBytecode;
  expect(opcodesIn(code, ["SSTORE", "DELEGATECALL", "SELFDESTRUCT"])).toEqual([]);
});

test("The operator's shared functions, events, and errors are identical to the escrow's", () => {
  const items = itemsOf("ArbiterOperator");
  const isShared = ({ type, name }: AbiItem) =>
    type !== "constructor" && items.some((item) => item.type === type && item.name === name);
  const own = ["COLLECTOR", "ESCROW", "FEE_IS_AMOUNT"];
  expect(sortedAbi((escrowAbi as readonly AbiItem[]).filter(isShared))).toEqual(
    sortedAbi(items.filter(({ type, name = "" }) => type !== "constructor" && !own.includes(name))),
  );
});

const TERMS = "(address,address,address,address,uint120,uint48,uint48,uint48,uint16,uint16,address,uint256)";

test.each([
  [
    "The operator calls authorize, capture, void, and paymentState of the escrow that holds payments",
    "ArbiterOperator",
    [
      `authorize(${TERMS},uint256,address,bytes)`,
      `capture(${TERMS},uint256,uint16,address)`,
      `capture(${TERMS},uint256,uint256,address)`,
      `void(${TERMS})`,
      "paymentState(bytes32)",
    ],
    [
      `charge(${TERMS},uint256,address,bytes,uint16,address)`,
      `refund(${TERMS},uint256,address,bytes)`,
      `reclaim(${TERMS})`,
    ],
  ],
  [
    "The evaluator calls complete and reject of a job contract",
    "ArbiterEvaluator",
    ["complete(uint256,bytes32,bytes)", "reject(uint256,bytes32,bytes)"],
    ["getJob(uint256)", "jobs(uint256)", "job(uint256)", "statusOf(uint256)", "claimRefund(uint256)"],
  ],
])("%s, and nothing else of it", (...[, name, called, never]) => {
  expect(called.filter((signature) => !pushedBy(name)(signature))).toEqual([]);
  expect(never.filter(pushedBy(name))).toEqual([]);
});
