import pg from "pg";
import type { Address } from "viem";
import { expect, onTestFinished, test, vi } from "vitest";
import { createActivityIndex } from "../../api/adapters/index/activity.ts";
import { createEscrowIndex } from "../../api/adapters/index/escrow.ts";
import { SCOPES, type Scope } from "../../indexer/ledger.ts";
import { waitUntil } from "../../scripts/embedded/wait-until.ts";
import { startTestChain, type TestChain } from "../support/chain/chain.ts";
import { startFaultyNode } from "../support/chain/faulty-node.ts";
import { deployEscrow, FEE_RECIPIENT, type TestEscrow } from "../support/escrow/contract.ts";
import { type Launched, launchIndexer } from "../support/indexer/launched.ts";
import { freshDatabase } from "../support/service/database.ts";
import { createEscrowActor, MERCHANTS, planBlocks } from "./escrow-actor.ts";
import { ESCROW_VIEWS, fundPayers, readSales } from "./escrow-record.ts";
import { readEvents, recountSums } from "./escrow-recount.ts";
import { readTables, recountTables } from "./score-recount.ts";

vi.setConfig({ testTimeout: 180_000 });
const CATCH_UP_MS = 60_000;
/** How far behind the head Ponder holds a block to be final. */
const FINAL_BEHIND = 30;

/** An index of this chain in a scope, in a database of its own. */
async function follow(chain: TestChain, scope: Scope) {
  const { ownerUrl, apiUrl } = await freshDatabase();
  const reader = new pg.Pool({ connectionString: apiUrl, max: 2 });
  const node = await startFaultyNode(chain);
  onTestFinished(async () => {
    await reader.end();
    node.stop();
  });
  const usdc = chain.network.usdc.address.toLowerCase();
  /** The first blocks of the ranges in which USDC's logs were asked for. */
  const asked: number[] = [];
  node.become(async (call, pass) => {
    const [filter] = (call.params ?? []) as readonly { address?: Address | Address[]; fromBlock?: string }[];
    const isOfUsdc = [filter?.address].flat().some((address) => address?.toLowerCase() === usdc);
    if (call.method === "eth_getLogs" && isOfUsdc) asked.push(Number(filter?.fromBlock));
    return pass(call);
  });
  const { position } = createActivityIndex(reader, ESCROW_VIEWS);
  const index = createEscrowIndex(reader, { viewsSchema: "live" });
  const caughtUp = async () => {
    const head = Number(await chain.client.getBlockNumber());
    expect(await waitUntil(async () => (await position())?.block === head, CATCH_UP_MS)).toBe(true);
  };
  const launch = async (...escrows: readonly TestEscrow[]) => {
    const launched = launchIndexer({
      ...{ DATABASE_URL: ownerUrl, BASE_RPC_URL: node.url, PAY_TO_ADDRESS: FEE_RECIPIENT, START_BLOCK: "0" },
      ...{ ESCROW_ADDRESSES: escrows.map(({ address }) => address).join(), INDEX_SCOPE: scope, EXCLUSIVE: "1" },
    });
    onTestFinished(launched.stop);
    await launched.saying("index ready");
    await launched.saying("escrow index ready");
    return launched;
  };
  /** Every row of a payment, and the sums of the added escrow, are what a recount from raw logs says. */
  const expectRecounts = async (escrows: readonly Address[], added: Address) => {
    await caughtUp();
    const sales = await readSales(chain, { escrows, from: 0 });
    expect(await readTables(reader), scope).toEqual(recountTables(sales, scope));
    const events = await readEvents(chain, added);
    expect(await index.balances(added)).toEqual(recountSums(events));
    return events.length;
  };
  return { asked, caughtUp, launch, expectRecounts };
}

test("an added escrow is in both indexes, and no old log of USDC is asked for again, in any scope", async () => {
  const chain = await startTestChain();
  onTestFinished(chain.stop);
  const indexes = await Promise.all(SCOPES.map((scope) => follow(chain, scope)));
  const caughtUp = () => Promise.all(indexes.map((one) => one.caughtUp()));

  const first = await deployEscrow(chain);
  const actor = await createEscrowActor(chain, first);
  await fundPayers(chain);
  await actor.play(planBlocks(8, 50));
  await chain.client.mine({ blocks: FINAL_BEHIND });
  const final = Number(await chain.client.getBlockNumber()) - FINAL_BEHIND;
  const before = await Promise.all(indexes.map(({ launch }) => launch(first)));
  await caughtUp();
  for (const { asked } of indexes) expect(asked.some((block) => block < final)).toBe(true);

  const second = await deployEscrow(chain);
  await actor.play(planBlocks(3, 51));
  await caughtUp();
  const addSecond = async ({ asked, launch }: (typeof indexes)[number], old: Launched) => {
    for (const message of ["ponder started", "escrow ponder started"])
      process.kill(Number(old.said(message).at(-1)?.ponderPid), "SIGKILL");
    await old.stop();
    asked.splice(0);
    const after = await launch(first, second);
    expect(asked.filter((block) => block < final)).toEqual([]);
    const schemaOf = ({ said }: Launched, message: string) => said(message)[0]?.schema;
    expect(schemaOf(after, "index ready")).toBe(schemaOf(old, "index ready"));
    expect(schemaOf(after, "escrow index ready")).not.toBe(schemaOf(old, "escrow index ready"));
  };
  await Promise.all(indexes.map((one, place) => addSecond(one, before[place] as Launched)));

  const expectRecounts = () =>
    Promise.all(indexes.map((one) => one.expectRecounts([first.address, second.address], second.address)));
  const seller = await createEscrowActor(chain, second);
  await actor.play(planBlocks(3, 52));
  await seller.mineSale("release", 1, MERCHANTS[1] as Address, 50_000n);
  await seller.mineSale("refund", 2, MERCHANTS[3] as Address, 60_000n);
  const open = await seller.mineHold(3, MERCHANTS[4] as Address, 70_000n);
  for (const events of await expectRecounts()) expect(events).toBeGreaterThan(3);

  await seller.mine(() => seller.release(open));
  await caughtUp();
  await chain.client.request({ method: "anvil_reorg", params: [2, []] } as never);
  await chain.mine();
  await expectRecounts();
});
