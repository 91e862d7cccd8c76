import hre from "hardhat";
import {
  type Address,
  decodeFunctionResult,
  encodeFunctionData,
  type Hex,
  publicActions,
  toFunctionSelector,
} from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { escrowAbi } from "../../contracts/abi.ts";
import { settlementBatchAbi } from "../../contracts/settlement-batch.ts";

const BATCH: Address = "0x00000000000000000000000000000000000ba7c4";
const TOKEN: Address = "0x0000000000000000000000000000000000707e40";
const PAYEE: Address = "0x0000000000000000000000000000000000c0ffee";
/** The calldata of one payment or hold with this gas cap, for a payer whose storage is cold. */
const CALLS = {
  settle: (gasCap: bigint) =>
    encodeFunctionData({
      abi: settlementBatchAbi,
      functionName: "settle",
      args: [TOKEN, PAYEE, gasCap, `0x${"17".repeat(134)}`],
    }),
  hold: (gasCap: bigint) => {
    const authorize = escrowAbi.find((item) => item.type === "function" && item.name === "authorize");
    if (authorize?.type !== "function") throw new Error("authorize is missing from the ABI");
    const call: Hex = `${toFunctionSelector(authorize)}${"17".repeat(20).padStart(64, "0").repeat(2)}`;
    return encodeFunctionData({ abi: settlementBatchAbi, functionName: "hold", args: [TOKEN, gasCap, [call]] });
  },
} as const;
const KINDS = ["settle", "hold"] as const;

const connection = await hre.network.create("simulatedBase");
const client = (await connection.viem.getTestClient()).extend(publicActions);

beforeAll(async () => {
  const { deployedBytecode } = await hre.artifacts.readArtifact("SettlementBatch");
  await client.setCode({ address: BATCH, bytecode: deployedBytecode as Hex });
});
afterAll(() => connection.close());

/** The code of a token that fails unless it gets exactly this amount of gas. */
function meter(gas: bigint): Hex {
  // PUSH4 and GAS have already run and cost 5.
  const wanted = (gas - 5n).toString(16).padStart(8, "0");
  // if (GAS == wanted) STOP; INVALID
  return `0x63${wanted}5a14600b57fe5b00`;
}

describe.each(KINDS)("%s", (kind) => {
  /** Calls in a separate transaction, with cold storage. */
  async function callWith(gas: bigint, gasCap: bigint) {
    const { data: answer } = await client.call({ to: BATCH, data: CALLS[kind](gasCap), gas });
    return decodeFunctionResult({ abi: settlementBatchAbi, functionName: kind, data: answer ?? "0x" });
  }

  test.each([30_000n, 100_000n, 5_000_000n])(
    "A call gets its cap of %d gas, or the transaction reverts",
    async (cap) => {
      await client.setCode({ address: TOKEN, bytecode: meter(cap) });
      let [little, enough] = [cap, (cap * 64n) / 63n + 40_000n];
      while (enough - little > 1n) {
        const middle = (little + enough) / 2n;
        const isEnough = await callWith(middle, cap).then(
          () => true,
          () => false,
        );
        [little, enough] = isEnough ? [little, middle] : [middle, enough];
      }
      expect(await callWith(enough, cap)).toEqual([0n, 0n]);
      await expect(callWith(little, cap)).rejects.toThrow("Starved(0)");
    },
  );
});
