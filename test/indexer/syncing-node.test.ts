import { expect, test } from "vitest";
import { connectChain, isSyncing } from "../../indexer/chain.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { startFaultyNode } from "../support/chain/nodes.ts";
import { type Fault, refuse, replyTo } from "../support/chain/rpc.ts";
import { forFile } from "../support/for-file.ts";

const node = await forFile(startFaultyNode(await forFile(startTestChain())));

test.each<[string, boolean, Fault]>([
  ["names the blocks that it has", true, async (call) => replyTo(call, { currentBlock: "0x0", highestBlock: "0x2" })],
  ["says no", false, async (call) => replyTo(call, false)],
  ["does not know the method", false, async (call) => refuse(call, -32_601, "not supported")],
])("whether a node syncs: it %s", async (_, expected, answer) => {
  node.become(async (call, pass) => (call.method === "eth_syncing" ? answer(call, pass) : pass(call)));
  expect(await isSyncing(connectChain(node.url))).toBe(expected);
});

test("whether a node syncs is not known while it is silent", async () => {
  node.become(async (call, pass) => (call.method === "eth_syncing" ? null : pass(call)));
  await expect(isSyncing(connectChain(node.url))).rejects.toThrow();
});
