import pg from "pg";
import type { Address } from "viem";
import { expect, onTestFinished, test, vi } from "vitest";
import { createActivityIndex } from "../../api/adapters/index/activity.ts";
import { createEscrowIndex } from "../../api/adapters/index/escrow.ts";
import { waitUntil } from "../../scripts/embedded/wait-until.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { startFaultyNode } from "../support/chain/faulty-node.ts";
import { deployEscrow, FEE_RECIPIENT, type TestEscrow } from "../support/escrow/contract.ts";
import { launchIndexer } from "../support/indexer/launched.ts";
import { freshDatabase } from "../support/service/database.ts";
import { createEscrowActor, MERCHANTS, planBlocks } from "./escrow-actor.ts";
import { ESCROW_VIEWS, fundPayers, readSales } from "./escrow-record.ts";
import { readEvents, recountSums } from "./escrow-recount.ts";
import { readTables, recountTables } from "./score-recount.ts";

vi.setConfig({ testTimeout: 180_000 });
const CATCH_UP_MS = 60_000;
/** How far behind the head Ponder holds a block to be final. */
const FINAL_BEHIND = 30;

test("an added escrow is in both indexes, and no old log of USDC is asked for again", async () => {
  const chain = await startTestChain();
  const { ownerUrl, apiUrl } = await freshDatabase();
  const reader = new pg.Pool({ connectionString: apiUrl, max: 2 });
  const node = await startFaultyNode(chain);
  onTestFinished(async () => {
    await reader.end();
    node.stop();
    await chain.stop();
  });
  const { address: usdc } = chain.network.usdc;
  /** The first blocks of the ranges in which USDC's logs were asked for. */
  const asked: number[] = [];
  node.become(async (call, pass) => {
    const [filter] = (call.params ?? []) as readonly { address?: Address | Address[]; fromBlock?: string }[];
    const isOfUsdc = [filter?.address].flat().some((address) => address?.toLowerCase() === usdc.toLowerCase());
    if (call.method === "eth_getLogs" && isOfUsdc) asked.push(Number(filter?.fromBlock));
    return pass(call);
  });
  const { position } = createActivityIndex(reader, ESCROW_VIEWS);
  const index = createEscrowIndex(reader, { viewsSchema: "live" });
  const headOf = async () => Number(await chain.client.getBlockNumber());
  const caughtUp = async () => {
    const head = await headOf();
    expect(await waitUntil(async () => (await position())?.block === head, CATCH_UP_MS)).toBe(true);
  };
  const launch = (...escrows: readonly TestEscrow[]) => {
    const launched = launchIndexer({
      ...{ DATABASE_URL: ownerUrl, BASE_RPC_URL: node.url, PAY_TO_ADDRESS: FEE_RECIPIENT, START_BLOCK: "0" },
      ...{ ESCROW_ADDRESSES: escrows.map(({ address }) => address).join(), INDEX_SCOPE: "selective", EXCLUSIVE: "1" },
    });
    onTestFinished(launched.stop);
    return launched;
  };

  const first = await deployEscrow(chain);
  const actor = await createEscrowActor(chain, first);
  await fundPayers(chain);
  await actor.play(planBlocks(8, 50));
  await chain.client.mine({ blocks: FINAL_BEHIND });
  const final = (await headOf()) - FINAL_BEHIND;
  const before = launch(first);
  await before.saying("index ready");
  await before.saying("escrow index ready");
  await caughtUp();
  expect(asked.some((block) => block < final)).toBe(true);

  const second = await deployEscrow(chain);
  await actor.play(planBlocks(3, 51));
  await caughtUp();
  for (const message of ["ponder started", "escrow ponder started"])
    process.kill(Number(before.said(message).at(-1)?.ponderPid), "SIGKILL");
  await before.stop();
  asked.splice(0);
  const after = launch(first, second);
  await after.saying("index ready");
  await after.saying("escrow index ready");
  expect(asked.filter((block) => block < final)).toEqual([]);
  const schemaOf = ({ said }: typeof before, message: string) => said(message)[0]?.schema;
  expect(schemaOf(after, "index ready")).toBe(schemaOf(before, "index ready"));
  expect(schemaOf(after, "escrow index ready")).not.toBe(schemaOf(before, "escrow index ready"));

  /** Every row of a payment, and the sums of the added escrow, are what a recount from raw logs says. */
  const expectRecounts = async () => {
    await caughtUp();
    const sales = await readSales(chain, { escrows: [first.address, second.address], from: 0 });
    expect(await readTables(reader)).toEqual(recountTables(sales, "selective"));
    const events = await readEvents(chain, second.address);
    expect(await index.balances(second.address)).toEqual(recountSums(events));
    return events.length;
  };
  const seller = await createEscrowActor(chain, second);
  await actor.play(planBlocks(3, 52));
  await seller.mineSale("release", 1, MERCHANTS[1] as Address, 50_000n);
  await seller.mineSale("refund", 2, MERCHANTS[3] as Address, 60_000n);
  const open = await seller.mineHold(3, MERCHANTS[4] as Address, 70_000n);
  expect(await expectRecounts()).toBeGreaterThan(3);

  await seller.mine(() => seller.release(open));
  await caughtUp();
  await chain.client.request({ method: "anvil_reorg", params: [2, []] } as never);
  await chain.mine();
  await expectRecounts();
});
