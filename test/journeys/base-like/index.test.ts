import pg from "pg";
import { expect, test, vi } from "vitest";
import { MULTICALL3 } from "../../../api/adapters/chain/multicall.ts";
import { createActivityIndex } from "../../../api/adapters/index/activity.ts";
import { waitUntil } from "../../../scripts/embedded/wait-until.ts";
import { createActor, SERVICE } from "../../indexer/history.ts";
import { readFacts } from "../../indexer/recount.ts";
import { readTables, recountTables } from "../../indexer/score-recount.ts";
import { startBaseLike } from "../../support/base-like/base-like.ts";
import { FREE_PLAN } from "../../support/base-like/profiles.ts";
import { forFile } from "../../support/for-file.ts";
import { launchIndexerOf } from "../../support/indexer/launched.ts";
import { freshDatabase } from "../../support/service/database.ts";

// Both scopes of the index follow a chain like Base through a provider whose nodes lag and refuse wide ranges.

vi.setConfig({ testTimeout: 90_000 });
const CATCH_UP_MS = 40_000;

const logs = { ...FREE_PLAN.logs, maxBlocks: 100n };
const base = await forFile(startBaseLike({ profile: { ...FREE_PLAN, batch: { max: 1_000, split: true }, logs } }));
const { chain } = base;
const actor = createActor(chain, 8453);

async function follow(scope: "full" | "authorised") {
  const database = await freshDatabase();
  const pool = await forFile(new pg.Pool({ connectionString: database.apiUrl, max: 2 }));
  const env = { INDEX_SCOPE: scope, PAY_TO_ADDRESS: SERVICE };
  const launched = await forFile(launchIndexerOf({ chain: { rpcUrl: base.url }, database, env }));
  const index = createActivityIndex(pool, { viewsSchema: "live", maxLagMs: Number.POSITIVE_INFINITY });
  return { scope, pool, launched, index };
}

async function act(times: number): Promise<void> {
  for (let n = 0; n < times; n += 1) await chain.client.waitForTransactionReceipt({ hash: await actor.act() });
}

await chain.fund(MULTICALL3, 10n ** 9n);
await act(20);
const scopes = await Promise.all([follow("full"), follow("authorised")]);
await Promise.all(scopes.map(({ launched }) => launched.saying("index ready")));

/** Blocks keep coming, as on Base: Ponder does not ask again for a head that it once failed to read. */
async function caughtUp({ scope, index, launched }: (typeof scopes)[number]): Promise<void> {
  for (const deadline = Date.now() + CATCH_UP_MS; ; await base.pass(1 / 30)) {
    const head = Number(await chain.client.getBlockNumber());
    if (await waitUntil(async () => (await index.position())?.block === head, 3_000)) return;
    if (Date.now() > deadline) throw new Error(`The ${scope} index did not reach ${head}. ${launched.output()}`);
  }
}

/** Every row equals a recount from the chain's raw logs, at its head. */
async function expectRecount(): Promise<void> {
  const facts = await readFacts(chain, [SERVICE]);
  for (const one of scopes) {
    await caughtUp(one);
    expect(await readTables(one.pool), one.scope).toEqual(recountTables(facts, one.scope));
  }
}

test("what was there before is read within the provider's limits", expectRecount);

test("what is paid while some nodes lag, are busy or stand still is missed by neither", async () => {
  base.backend(1, { lagMs: 400 });
  await act(10);
  base.busy(429, 5);
  base.busy(503, 5);
  base.backend(2, { standsAt: await chain.client.getBlockNumber() });
  await act(10);
  base.backend(2, { standsAt: null });
  base.backend(1, { lagMs: 120 });
  await expectRecount();
});

test("a reorganisation takes out what it removed", async () => {
  await act(3);
  await expectRecount();
  await chain.client.request({ method: "anvil_reorg", params: [3, []] } as never);
  await act(4);
  await expectRecount();
});

test("minutes without a payment are followed to the head", async () => {
  await base.pass(5);
  await act(2);
  await expectRecount();
  for (const { launched } of scopes) expect(launched.said("the indexer stopped and is restarting")).toEqual([]);
});
