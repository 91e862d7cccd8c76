import { expect, test } from "vitest";
import { createInflowReader } from "../../../api/adapters/chain/inflows/read-inflows.ts";
import { connect } from "../../../api/adapters/postgres/connection.ts";
import { createMarkStore } from "../../../api/adapters/postgres/lookup-marks.ts";
import { MAIN_NETWORK, NETWORKS } from "../../../api/kernel/networks.ts";
import type { Address } from "../../../api/kernel/wallet.ts";
import { examine } from "../../../api/score/lookup/examine.ts";
import { funderAt, type Inflows, NO_INFLOWS } from "../../../api/score/lookup/inflows.ts";
import type { Mark } from "../../../api/score/lookup/lookup-ports.ts";
import { openProvider } from "../../../indexer/fetch/provider.ts";
import { type Call, refuse, replyTo, serveNode } from "../../support/chain/rpc.ts";
import { forFile } from "../../support/for-file.ts";
import { freshDatabase } from "../../support/service/database.ts";

// Wallets with very many transfers to them, at a provider that returns at most 2,000 logs. No local chain has as many: the
// node is ours, and makes each block's logs when it is asked for them.

const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const USED = "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5";
const LAST = 40_000;
const MOST_LOGS = 2_000;
const address = (n: number): Address => `0x${n.toString(16).padStart(40, "0")}`;
const word = (n: number | bigint) => `0x${n.toString(16).padStart(64, "0")}`;

const FUNDER = address(0xf00d);
const [BUSY, ONE_MORE, CROWDED, BURST] = [address(0xa1), address(0xa2), address(0xa3), address(0xa4)];
/** How many transfers to a wallet a block has. The first of all is its funder's; the others are dust of a sender each. */
const COUNTS: Readonly<Record<Address, (block: number) => number>> = {
  [BUSY]: (block) => (block <= 10_000 ? 1 : 0),
  [ONE_MORE]: (block) => (block <= 10_001 ? 1 : 0),
  // A million.
  [CROWDED]: () => 25,
  // After which no request for many blocks must stay impossible.
  [BURST]: (block) => (block <= 50 ? 100 : 0),
};

const asked = { logs: 0, refused: 0, returned: 0 };
const place = (block: number) => ({
  ...{ address: NETWORKS[MAIN_NETWORK].usdc.address.toLowerCase(), transactionHash: word(block + 2 ** 41) },
  ...{ blockNumber: `0x${block.toString(16)}`, blockHash: word(block + 2 ** 40) },
});

function logsOf(block: number, { kinds, third }: { kinds: readonly string[]; third: readonly string[] | null }) {
  const used = { ...place(block), logIndex: "0x0", topics: [USED, word(0xbeef), word(block)], data: "0x" };
  const transfers = Object.entries(COUNTS).flatMap(([wallet, count]) => {
    if (!kinds.includes(TRANSFER) || third?.includes(word(BigInt(wallet))) !== true) return [];
    return Array.from({ length: count(block) }, (_, n) => {
      const isFirst = block === 1 && n === 0;
      const topics = [
        TRANSFER,
        word(BigInt(isFirst ? FUNDER : address(2 ** 30 + block * 128 + n))),
        word(BigInt(wallet)),
      ];
      return { ...place(block), logIndex: `0x${(n + 1).toString(16)}`, topics, data: word(isFirst ? 1_000_000 : 1) };
    });
  });
  return [...(kinds.includes(USED) && third?.includes(word(block)) !== false ? [used] : []), ...transfers];
}

function answer(call: Call) {
  const [first] = call.params as [
    string & { fromBlock: string; toBlock: string; topics: (string | string[] | null)[] },
  ];
  if (call.method === "eth_getBlockByNumber") {
    const block = first === "finalized" ? LAST : Number(first);
    return replyTo(call, { number: place(block).blockNumber, hash: place(block).blockHash });
  }
  asked.logs += 1;
  const wanted = { kinds: [first.topics[0]].flat() as string[], third: (first.topics[2] ?? null) as string[] | null };
  const logs: object[] = [];
  for (let block = Number(first.fromBlock); block <= Number(first.toBlock); block += 1) {
    logs.push(...logsOf(block, wanted));
    // Besides the two marks.
    if (logs.length <= MOST_LOGS + 2) continue;
    asked.refused += 1;
    return refuse(call, -32_005, "query returned more than 2000 results");
  }
  asked.returned += logs.length;
  return replyTo(call, logs);
}

test("more than 10,000 transfers to a wallet are not read: its funder is unknown from there on, and known before", async () => {
  const node = await forFile(serveNode({ answer: async (call) => answer(call) }));
  const pool = await forFile(connect((await freshDatabase()).apiUrl, 1));
  const reader = createInflowReader({ provider: openProvider([node.url], 10_000, true), marks: createMarkStore(pool) });
  const basis = { firstBlock: 1, ignored: [] };
  let spent = 0;
  const spend = async () => {
    spent += 1;
  };
  const end = (await reader.final(basis, spend)) as Mark;
  expect(end.block).toBe(LAST);
  const read = new Map<Address, Inflows>();
  await reader.read(basis, {
    from: [BUSY, ONE_MORE, CROWDED, BURST].map((wallet) => ({ wallet, through: null, inflows: NO_INFLOWS })),
    ...{ end, spend },
    save: async (progress) => {
      for (const { wallet, inflows } of progress) read.set(wallet, inflows);
    },
  });
  const of = (wallet: Address) => read.get(wallet) as Inflows;
  const fullAt = [BUSY, ONE_MORE, CROWDED, BURST].map((wallet) => of(wallet).fullAt);
  expect(fullAt).toEqual([null, 10_001, 401, null]);
  const funders = [
    ...[funderAt(of(BUSY), LAST), funderAt(of(ONE_MORE), 10_000), funderAt(of(ONE_MORE), 10_001)],
    ...[funderAt(of(CROWDED), 400), funderAt(of(CROWDED), 401)],
  ];
  expect(funders).toEqual([FUNDER, FUNDER, null, FUNDER, null]);
  // A million transfers cost a few dozen requests, and are never returned.
  expect(spent).toBeLessThan(150);
  expect(asked.refused).toBeGreaterThan(5);
  expect(asked.returned).toBeLessThan(60_000);

  // Nobody is examined for a wallet whose funder is unknown, and none of its payees counts.
  const payee = address(0xb1);
  const payers = [address(0xc1), address(0xc2), address(0xc3)].map((payer) => ({ payer, block: 3 }));
  const paid = { payee, atomic: 50_000n, unpaid: 0n, isInWindow: true, block: 5, otherPayers: 3, payers };
  const known = new Map([[ONE_MORE, { inflows: of(ONE_MORE), through: LAST }]]);
  expect(examine({ wallet: ONE_MORE, payees: [paid] }, known, LAST)).toEqual({
    largestFunder: null,
    payees: { [payee]: { returned: "0", funder_at_floor: FUNDER, payers: [] } },
  });
});
