import { afterEach, expect, test } from "vitest";
import { openProvider } from "../../api/platform/chain/provider.ts";
import { MULTICALL3 } from "../../api/platform/chain/read-at-block.ts";
import { connect } from "../../api/platform/db/connection.ts";
import { createInflowReader } from "../../api/score/lookup/chain.ts";
import { funderAt, type KnownBlock, NO_INFLOWS, type Progress } from "../../api/score/lookup/inflows.ts";
import { createMarkStore } from "../../api/score/lookup/store.ts";

import { createActor, SERVICE, WALLETS } from "../indexer/history.ts";
import { startBaseLike } from "../support/base-like/base-like.ts";
import { BASE, FREE_PLAN } from "../support/base-like/profiles.ts";
import { type Fault, logsUpTo, refuse, replyTo, sometimes } from "../support/chain/rpc.ts";
import { forFile } from "../support/for-file.ts";
import { freshDatabase } from "../support/service/database.ts";

// The senders of transfers to a wallet, read through a provider with limits, lagging nodes, rejections, and failures.

const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const base = await startBaseLike({
  profile: { ...BASE, logs: { ...FREE_PLAN.logs, maxBlocks: 15n, maxLogs: 40 } },
});
await forFile({ end: base.stop });
const pool = await forFile(connect((await freshDatabase()).apiUrl, 2));
const { client, network } = base.chain;
const actor = createActor(base.chain, 11);
await base.chain.fund(MULTICALL3, 10n ** 9n);
const BASIS = { firstBlock: Number(await client.getBlockNumber()), ignored: [SERVICE] };
for (let n = 0; n < 25; n += 1) await actor.act();
const middle = Number(await client.getBlockNumber()) - 20;
await base.pass(16);
await base.caughtUp();

afterEach(async () => {
  base.become(null);
  for (const table of ["inflow", "lookup_mark"]) await pool.query(`delete from ${table}`);
});

const spend = async () => {};
const readerOf = () => createInflowReader({ provider: openProvider([base.url], 10_000), marks: createMarkStore(pool) });

/** Reads the inflows of all wallets from the first block on. */
async function readAll(save: (progress: readonly Progress[]) => Promise<void> = async () => {}) {
  const reader = readerOf();
  const end = (await reader.final(BASIS, spend)) as KnownBlock;
  const known = new Map<string, Progress>();
  await reader.read(BASIS, {
    from: WALLETS.map((wallet) => ({ wallet, through: null, inflows: NO_INFLOWS })),
    ...{ end, spend },
    save: async (progress) => {
      for (const one of progress) known.set(one.wallet, one);
      await save(progress);
    },
  });
  return { end, known };
}

interface Sent {
  readonly block: number;
  readonly from: string;
  readonly to: string;
  readonly value: bigint;
}

/** Every transfer up to this block that counts, from the chain's raw logs. */
async function transfersUpTo(block: number): Promise<readonly Sent[]> {
  const logs = await client.getLogs({
    address: network.usdc.address,
    fromBlock: BigInt(BASIS.firstBlock),
    toBlock: BigInt(block),
  });
  return logs.flatMap(({ topics, data, blockNumber }) => {
    const [kind, from, to] = topics as string[];
    if (kind !== TRANSFER) return [];
    const sent = { from: `0x${from?.slice(26)}`, to: `0x${to?.slice(26)}` };
    const counts = BigInt(data) > 0n && sent.from !== sent.to && !/^0x0+$/.test(sent.from) && sent.from !== SERVICE;
    return counts ? [{ ...sent, block: Number(blockNumber), value: BigInt(data) }] : [];
  });
}

/** The definition: among the senders of the largest sum, the one who reached it first. */
function largestFunder(inflows: readonly Sent[]): string | null {
  const totals = new Map<string, bigint>();
  let most: { from: string; sum: bigint } | null = null;
  for (const { from, value } of inflows) {
    totals.set(from, (totals.get(from) ?? 0n) + value);
    const sum = totals.get(from) as bigint;
    if (most === null || sum > most.sum) most = { from, sum };
  }
  return most?.from ?? null;
}

async function expectRecount({ end, known }: Awaited<ReturnType<typeof readAll>>): Promise<void> {
  const all = await transfersUpTo(end.block);
  expect(all.length).toBeGreaterThan(30);
  for (const wallet of WALLETS) {
    const { inflows, through } = known.get(wallet) as Progress;
    const mine = all.filter(({ to }) => to === wallet);
    expect(through).toEqual(end);
    const sums = Map.groupBy(mine, ({ from }) => from);
    expect(new Map(Object.entries(inflows.sent)), wallet).toEqual(
      new Map([...sums].map(([from, some]) => [from, String(some.reduce((sum, { value }) => sum + value, 0n))])),
    );
    for (let block = BASIS.firstBlock; block <= end.block; block += 7)
      expect(funderAt(inflows, block), `${wallet} at ${block}`).toBe(
        largestFunder(mine.filter((one) => one.block <= block)),
      );
  }
}

const isOdd = (n: number) => n % 2 === 1;

test("The inflows equal a recount up to a final block, whatever a provider allows", async () => {
  const read = await readAll();
  await expectRecount(read);
  expect(read.end.block).toBeLessThanOrEqual(Number((await client.getBlock({ blockTag: "latest" })).number));
});

test("A lagging node, empty responses, nulls, and errors leave no hole", async () => {
  const wrong: readonly Fault[] = [
    logsUpTo(middle),
    async (call) => replyTo(call, []),
    async (call) => replyTo(call, null),
    async (call) => refuse(call, -32000, "missing trie node"),
  ];
  // Read beforehand, because a lagging node makes the newest mark an older one.
  await readerOf().final(BASIS, spend);
  let turn = 0;
  base.become(sometimes("eth_getLogs", isOdd, (call, pass) => (wrong[turn++ % wrong.length] as Fault)(call, pass)));
  await expectRecount(await readAll());
  expect(turn).toBeGreaterThan(wrong.length);
});
