import pg from "pg";
import type { Address } from "viem";
import { expect, onTestFinished, test, vi } from "vitest";
import { createEscrowIndex } from "../../api/escrow/index-store.ts";
import { createActivityIndex } from "../../api/platform/index/activity.ts";
import { SCOPES, type Scope } from "../../indexer/ledger.ts";
import { createEscrowActor, lower, MERCHANTS, planBlocks, readEvents, recountSums } from "../indexer/escrow-actor.ts";
import { ESCROW_VIEWS, expectRecords, fundPayers } from "../indexer/escrow-record.ts";
import { createActor } from "../indexer/history.ts";
import { ageIndex, answerOf, pruneClosely } from "../indexer/indexed.ts";
import type { Own } from "../indexer/recount.ts";
import { type BaseLike, startBaseLike } from "../support/base-like/base-like.ts";
import { BASE, FREE_PLAN } from "../support/base-like/profiles.ts";
import { startFaultyNode } from "../support/chain/nodes.ts";
import { deployEscrow, FEE_RECIPIENT, type TestEscrow } from "../support/escrow/contract.ts";
import { type Launched, launchIndexer } from "../support/indexer/launched.ts";
import { freshDatabase } from "../support/service/database.ts";
import { waitUntil } from "../support/wait-until.ts";

// Two indexes, one per scope, through a provider whose nodes lag and reject wide ranges.

vi.setConfig({ testTimeout: 400_000 });
const profile = { ...BASE, logs: { ...FREE_PLAN.logs, maxBlocks: 100n } };
const CATCH_UP_MS = 180_000;
/** The number of blocks behind the head at which Ponder treats a block as final. */
const FINAL_BEHIND = 30;
/** A merchant with payments that is later configured as the service's own address. */
const LATE = lower(MERCHANTS[2] as Address);

/** Indexes the chain in this scope into a new database, through the provider. */
async function follow(base: BaseLike, scope: Scope) {
  const { chain } = base;
  const database = await freshDatabase();
  const reader = new pg.Pool({ connectionString: database.apiUrl, max: 2 });
  const node = await startFaultyNode({ rpcUrl: base.url });
  onTestFinished(async () => {
    await reader.end();
    node.stop();
  });
  const usdc = chain.network.usdc.address.toLowerCase();
  /** The first blocks of the ranges requested for USDC's logs. */
  const asked: number[] = [];
  node.become(async (call, pass) => {
    const [filter] = (call.params ?? []) as readonly { address?: Address | Address[]; fromBlock?: string }[];
    const isOfUsdc = [filter?.address].flat().some((address) => address?.toLowerCase() === usdc);
    if (call.method === "eth_getLogs" && isOfUsdc) asked.push(Number(filter?.fromBlock));
    return pass(call);
  });
  const { position } = createActivityIndex(reader, ESCROW_VIEWS);
  const index = createEscrowIndex(reader, { viewsSchema: "live" });
  /** Makes new blocks, as Base does, because Ponder does not retry a head that it once failed to read. */
  const caughtUp = async () => {
    for (const deadline = Date.now() + CATCH_UP_MS; ; await base.pass(1 / 30)) {
      const head = Number(await chain.client.getBlockNumber());
      if (await waitUntil(async () => (await position())?.block === head, 3_000)) return;
      expect(Date.now()).toBeLessThan(deadline);
    }
  };
  const launch = (escrows: readonly TestEscrow[], changed = {}) => {
    const launched = launchIndexer({
      ...{ DATABASE_URL: database.indexerUrl, BASE_RPC_URL: node.url, PAY_TO_ADDRESS: FEE_RECIPIENT, START_BLOCK: "0" },
      ...{ ESCROW_ADDRESSES: escrows.map(({ address }) => address).join(), INDEX_SCOPE: scope },
      ...changed,
    });
    onTestFinished(launched.stop);
    return launched;
  };
  /** Expects every row and window of the wallets, and each escrow's sums, to equal a recount from raw logs. */
  const expectRecounts = async (escrows: readonly Address[], own: Own) => {
    await caughtUp();
    await expectRecords(chain, { reader, scope }, { escrows, from: 0, own });
    for (const escrow of escrows)
      expect(await answerOf(() => index.balances(escrow))).toEqual(recountSums(await readEvents(chain, escrow)));
  };
  const age = (schema: string) => ageIndex({ database }, schema);
  return { asked, position, caughtUp, launch, expectRecounts, age, prune: () => pruneClosely({ database }) };
}

test("In either scope, adding an escrow and an own address builds a second index with all data while the first one serves", async () => {
  const base = await startBaseLike({ profile });
  onTestFinished(base.stop);
  const { chain } = base;
  const indexes = await Promise.all(SCOPES.map((scope) => follow(base, scope)));
  const ofEach = <T>(work: (one: (typeof indexes)[number], place: number) => Promise<T>) =>
    Promise.all(indexes.map(work));

  const first = await deployEscrow(chain);
  const actor = await createEscrowActor(chain, first);
  const { pay } = createActor(chain, 53);
  await fundPayers(chain);
  await actor.play(planBlocks(8, 50));
  await pay({ from: 1, to: LATE, value: 60_000n });
  await chain.client.mine({ blocks: FINAL_BEHIND });
  const final = Number(await chain.client.getBlockNumber()) - FINAL_BEHIND;
  const before = indexes.map(({ launch }) => launch([first]));
  await Promise.all(before.map((one) => one.untilLogged("index ready")));
  // One at a time, because a recount would delay the others' responses.
  for (const one of indexes) await one.expectRecounts([first.address], {});

  const second = await deployEscrow(chain);
  await actor.play(planBlocks(3, 51));
  const heldBefore = await actor.mineHold(0, LATE, 80_000n);
  await ofEach((one) => one.caughtUp());
  for (const pruned of await ofEach(({ prune }) => prune())) expect(pruned).toBeGreaterThan(0);
  await ofEach(async ({ asked, position, launch, age }, place) => {
    asked.splice(0);
    const after = launch([first, second], { OWN_ADDRESSES: LATE });
    let answers = 0;
    for (; after.logged("index ready").length === 0; answers += 1) expect(await position()).not.toBeNull();
    expect(answers).toBeGreaterThan(10);
    expect(asked.some((block) => block < final)).toBe(true);
    const old = before[place] as Launched;
    await old.stop();
    await age(String(old.logged("index ready")[0]?.schema));
    await after.untilLogged("dropped a replaced index");
    expect(after.logged("dropped a replaced index")[0]?.dropped).toBe(old.logged("index ready")[0]?.schema);
  });

  const own = { [LATE]: 0 };
  const expectRecounts = async () => {
    for (const one of indexes) await one.expectRecounts([first.address, second.address], own);
  };
  const seller = await createEscrowActor(chain, second);
  await actor.mine(() => actor.release(heldBefore));
  await actor.play(planBlocks(3, 52));
  await seller.mineSale("release", 1, MERCHANTS[1] as Address, 50_000n);
  await seller.mineSale("refund", 2, MERCHANTS[3] as Address, 60_000n);
  const open = await seller.mineHold(3, MERCHANTS[4] as Address, 70_000n);
  await expectRecounts();
  expect((await readEvents(chain, second.address)).length).toBeGreaterThan(3);

  await seller.mine(() => seller.release(open));
  await ofEach((one) => one.caughtUp());
  await chain.client.request({ method: "anvil_reorg", params: [2, []] } as never);
  await chain.mine();
  await expectRecounts();
});
