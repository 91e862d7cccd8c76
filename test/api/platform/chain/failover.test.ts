import { afterEach, expect, test } from "vitest";
import { checkChains } from "../../../../api/operations/probes.ts";
import { createChain } from "../../../../api/platform/chain/chain.ts";
import { eachNetwork, MAIN_NETWORK } from "../../../../api/platform/networks.ts";
import { readConditions } from "../../../../api/platform/relayer/fees.ts";
import { startTestChain } from "../../../support/chain/chain.ts";
import { type MortalNode, startMortalNode } from "../../../support/chain/nodes.ts";
import { forFile } from "../../../support/for-file.ts";

const [chain, sepolia] = await Promise.all([
  forFile(startTestChain()),
  forFile(startTestChain({ network: "eip155:84532" })),
]);
const nodes: MortalNode[] = [];
afterEach(() => {
  for (const node of nodes.splice(0)) node.stop();
});

async function start(count: number): Promise<readonly MortalNode[]> {
  const started = await Promise.all(Array.from({ length: count }, () => startMortalNode(chain.rpcUrl)));
  nodes.push(...started);
  return started;
}
const open = (rpcUrl: readonly string[]) => createChain("eip155:8453", { rpcUrl, logBlockRange: 1_000 });
const statesOf = ({ nodes: { list } }: ReturnType<typeof open>) => list.map(({ state }) => state());
const forget = (...all: readonly MortalNode[]) => {
  for (const { asked } of all) (asked as string[]).length = 0;
};

test("The second node is used while the first is down, and the first is used again once it is back", async () => {
  const [first, second] = (await start(2)) as [MortalNode, MortalNode];
  const reader = open([first.url, second.url]);
  await reader.client.getBlock();
  expect([first.asked, second.asked]).toEqual([["eth_getBlockByNumber"], []]);

  first.kill();
  const asked = await Promise.all(Array.from({ length: 20 }, () => reader.client.getBlockNumber()));
  expect(new Set(asked).size).toBe(1);
  expect(statesOf(reader)).toEqual(["away", "ready"]);
  second.kill();
  await expect(reader.client.getBlock()).rejects.toThrow(/cannot be read/);

  await Promise.all([first.revive(), second.revive()]);
  await expect.poll(() => statesOf(reader)).toEqual(["ready", "ready"]);
  forget(first, second);
  await reader.client.getBlock();
  expect([first.asked, second.asked]).toEqual([["eth_getBlockByNumber"], []]);
});

test("Readings that must agree come from different nodes, even while one of three is down", async () => {
  const [first, second, third] = (await start(3)) as [MortalNode, MortalNode, MortalNode];
  const reader = open([first.url, second.url, third.url]);
  const { hash: blockHash, number } = await chain.client.getBlock();
  await chain.finalize();
  const settlement = { transaction: blockHash, block: Number(number), blockHash, logIndex: 0 };
  const shares = () => [first, second, third].map(({ asked }) => asked.length);

  // Two readings of the final block and three of the settlement's block.
  expect(await reader.settlementStateNow(settlement)).toBe("final");
  expect(shares()).toEqual([2, 2, 1]);
  forget(first, second, third);
  await readConditions(reader.client, "0x000000000000000000000000000000000000dead")();
  expect(first.asked).toContain("eth_getTransactionCount");
  for (const { asked } of [first, second, third])
    expect(asked.filter((method) => method === "eth_maxPriorityFeePerGas")).toHaveLength(1);

  first.kill();
  await reader.client.getBlock();
  expect(statesOf(reader)).toEqual(["away", "ready", "ready"]);
  forget(first, second, third);
  expect(await reader.settlementStateNow(settlement)).toBe("final");
  const [, two = 0, three = 0] = shares();
  expect([two + three, Math.min(two, three)]).toEqual([5, 2]);
});

test("A node of another chain is reported and not used, at startup and when it first responds", async () => {
  const [first, second] = (await start(2)) as [MortalNode, MortalNode];
  const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const ended: string[] = [];
  const check = (base: ReturnType<typeof open>, test: readonly string[]) =>
    checkChains(
      eachNetwork((network) =>
        network === MAIN_NETWORK ? base : createChain(network, { rpcUrl: test, logBlockRange: 1_000 }),
      ),
      { log: silent, end: (problem) => void ended.push(problem) },
    );
  second.follow(sepolia.rpcUrl);
  const wrong = open([first.url, second.url]);
  const problem = "URL 2 of BASE_RPC_URL is a node of chain 84532; expected chain 8453.";
  expect(await check(wrong, [sepolia.rpcUrl])).toBe(problem);
  expect(statesOf(wrong)).toEqual(["ready", "wrong"]);

  second.kill();
  const reader = open([second.url]);
  // A wrong node for the test network does not end the process.
  expect(await check(reader, [chain.rpcUrl])).toBeNull();
  expect(statesOf(reader)).toEqual(["unread"]);
  forget(second);
  await second.revive();
  await expect(reader.client.getBlock()).rejects.toThrow(/has not been read|is wrong/);
  await expect.poll(() => ended).toEqual(["BASE_RPC_URL is a node of chain 84532; expected chain 8453."]);
  await expect(reader.client.getBlock()).rejects.toThrow(/is wrong/);
  expect(new Set(second.asked)).toEqual(new Set(["eth_chainId"]));
});
