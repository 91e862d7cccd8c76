import hre from "hardhat";
import { type Address, decodeFunctionResult, encodeFunctionData, type Hex, publicActions } from "viem";
import { afterAll, beforeAll, expect, test } from "vitest";
import { settlementBatchAbi } from "../../contracts/settlement-batch.ts";

const BATCH: Address = "0x00000000000000000000000000000000000ba7c4";
const TOKEN: Address = "0x0000000000000000000000000000000000707e40";
const PAYEE: Address = "0x0000000000000000000000000000000000c0ffee";
const SETTLE = { abi: settlementBatchAbi, functionName: "settle" } as const;
const ONE_ITEM: Hex = `0x${"17".repeat(134)}`;

const connection = await hre.network.create("simulatedBase");
const client = (await connection.viem.getTestClient()).extend(publicActions);

beforeAll(async () => {
  const { deployedBytecode } = await hre.artifacts.readArtifact("SettlementBatch");
  await client.setCode({ address: BATCH, bytecode: deployedBytecode as Hex });
});
afterAll(() => connection.close());

/** The code of a token that fails unless it is given exactly this much gas. */
function meter(gas: bigint): Hex {
  // PUSH4 and GAS, which have run by then, take 5.
  const wanted = (gas - 5n).toString(16).padStart(8, "0");
  // if (GAS == wanted) STOP; INVALID
  return `0x63${wanted}5a14600b57fe5b00`;
}

/** Settles one payment in a transaction of its own, which has touched nothing yet. */
async function settleWith(gas: bigint, gasCap: bigint) {
  const data = encodeFunctionData({ ...SETTLE, args: [TOKEN, PAYEE, gasCap, ONE_ITEM] });
  const { data: answer } = await client.call({ to: BATCH, data, gas });
  return decodeFunctionResult({ ...SETTLE, data: answer ?? "0x" });
}

test.each([30_000n, 100_000n, 5_000_000n])("a call gets its cap of %d gas, or the transaction reverts", async (cap) => {
  await client.setCode({ address: TOKEN, bytecode: meter(cap) });
  let [little, enough] = [cap, (cap * 64n) / 63n + 40_000n];
  while (enough - little > 1n) {
    const middle = (little + enough) / 2n;
    const isEnough = await settleWith(middle, cap).then(
      () => true,
      () => false,
    );
    [little, enough] = isEnough ? [little, middle] : [middle, enough];
  }
  expect(await settleWith(enough, cap)).toEqual([0n, 0n]);
  await expect(settleWith(little, cap)).rejects.toThrow("Starved(0)");
});
