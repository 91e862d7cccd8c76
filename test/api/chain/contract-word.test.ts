import { expect, test } from "vitest";
import { createChain } from "../../../api/adapters/chain/chain-reader.ts";
import { createContractWord } from "../../../api/adapters/chain/contract-word.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";

const chain = await forFile(startTestChain());
const word = createContractWord(createChain("eip155:8453", { rpcUrl: chain.rpcUrl, logBlockRange: 1_000 }));
const payTo = `0x${"c1".repeat(20)}` as const;
const MAGIC = `7f1626ba7e${"00".repeat(28)}60005260206000f3`;

test.each([
  ["no code", "0x", false],
  ["code that takes every signature", `0x${MAGIC}`, true],
  ["code that refuses", "0x60006000fd", false],
  ["code that says one", "0x600160005260206000f3", false],
  ["code that says nothing", "0x00", false],
  ["code that never ends", "0x5b600056", false],
  ["code that returns two megabytes", "0x621fffe06000f3", false],
])("a payee with %s is asked at one block, and its word is read", async (_, code, isSigned) => {
  await chain.client.request({ method: "anvil_setCode", params: [payTo, code] } as never);
  const { timestamp } = await chain.client.getBlock();
  const said = await word({ payTo, text: "x402-exam v1", signature: "0x1234" });
  expect(said.isSigned).toBe(isSigned);
  expect(said.time).toBeGreaterThanOrEqual(Number(timestamp));
});
