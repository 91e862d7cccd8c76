import { type Hex, numberToHex } from "viem";
import { afterEach, describe, expect, test } from "vitest";
import { createChain } from "../../../../api/platform/chain/chain.ts";
import { startTestChain } from "../../../support/chain/chain.ts";
import { startFaultyNode } from "../../../support/chain/nodes.ts";
import { type Call, type Reply, refuse, replyTo } from "../../../support/chain/rpc.ts";
import { forFile } from "../../../support/for-file.ts";
import { slowWallet } from "../../../support/payments/wallets.ts";

const chain = await forFile(startTestChain());
const reader = createChain("eip155:8453", { rpcUrl: chain.rpcUrl, logBlockRange: 1_000 });
const digest: Hex = `0x${"12".repeat(32)}`;

async function wallet(number: number, rounds: number): Promise<Hex> {
  const address = numberToHex(0xc0de00 + number, { size: 20 });
  await chain.client.setCode({ address, bytecode: slowWallet(rounds) });
  return address;
}

describe("Signatures at a past block", async () => {
  const faulty = await forFile(startFaultyNode(chain));
  const asked = createChain("eip155:8453", { rpcUrl: faulty.url, logBlockRange: 1_000 });
  const payer = await wallet(4, 1);
  await chain.mine(1);
  const block = Number(await chain.client.getBlockNumber());
  const isSigned = () => asked.verifyContractSignature({ payer, digest, signature: "0x01" }, null, { block });
  const answers = (reply: (call: Call, seen: number) => Reply | null) => {
    let seen = 0;
    faulty.become(async (call, pass) =>
      call.method === "eth_call" ? (reply(call, seen++) ?? pass(call)) : pass(call),
    );
  };
  afterEach(() => faulty.become(null));

  test.each([
    ["a revert", 3, "execution reverted"],
    ["geth's out of gas", -32_000, "out of gas"],
    ["geth's invalid instruction", -32_000, "invalid opcode: INVALID"],
    ["reth's stack fault", -32_603, "EVM error: StackUnderflow"],
  ])("The signature is invalid if the node returns %s", async (_, code, message) => {
    answers((call) => refuse(call, code, message));
    expect(await isSigned()).toBe(false);
  });

  test.each([
    ["an internal error", -32_603, "Internal error"],
    ["a missing state", -32_000, "missing trie node"],
  ])("The check throws if the node returns %s", async (_, code, message) => {
    answers((call) => refuse(call, code, message));
    await expect(isSigned()).rejects.toThrow();
  });

  test("A null from one of two readings does not make a signature invalid", async () => {
    answers((call, seen) => (seen === 0 ? replyTo(call, null) : null));
    expect(await isSigned()).toBe(true);
  });
});

test.each([
  ["300,000", 5_000, true],
  ["700,000", 12_000, false],
])("A signature whose check needs about %s gas (%i rounds) is valid: %s", async (_, rounds, isSigned) => {
  const payer = await wallet(rounds, rounds);
  expect(await reader.verifyContractSignature({ payer, digest, signature: "0x01" }, null)).toBe(isSigned);
});
