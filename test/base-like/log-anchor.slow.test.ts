import { parseEventLogs, toHex } from "viem";
import { generatePrivateKey } from "viem/accounts";
import { expect, test, vi } from "vitest";
import { OUTCOMES } from "../../api/escrow/index.ts";
import { createLogAnchors } from "../../api/log/anchor/chain.ts";
import { createAnchorStore } from "../../api/log/anchor/store.ts";
import { createAnchoring } from "../../api/log/witness/index.ts";
import { createAccount } from "../../api/platform/chain/accounts.ts";
import { createChain } from "../../api/platform/chain/chain.ts";
import { createSeal } from "../../api/platform/db/seal.ts";
import { SHARES } from "../../api/platform/relayer/places.ts";
import { createRelayer } from "../../api/platform/relayer/relayer.ts";
import { LOG_ANCHOR, logAnchorAbi } from "../../contracts/log-anchor.ts";
import { anvilClient } from "../../scripts/embedded/anvil.ts";
import { startBaseLike } from "../support/base-like/base-like.ts";
import { reorganize } from "../support/chain/blocks.ts";
import { artifactOf } from "../support/chain/contracts.ts";
import { eventually } from "../support/eventually.ts";
import { forFile } from "../support/for-file.ts";
import { logStage } from "../support/log/stage.ts";

// Anchors of the log through lagging nodes, a reorganization, and a halt.

vi.setConfig({ testTimeout: 240_000 });

const HALTED_MINUTES = 3;
const FINAL_MINUTES = 16;
const base = await forFile(startBaseLike());
const { chain } = base;
const at = await logStage();
const reader = createChain("eip155:8453", { rpcUrl: base.url, logBlockRange: 9_000 });
const parts = {
  pool: at.pool,
  seal: createSeal(Buffer.alloc(32, 3)),
  log: { warn: () => undefined },
  client: reader.client,
  chainId: 8453,
  counter: null,
  shares: SHARES.arbiter,
  mostLostWei: null,
};
const relayer = createRelayer({ ...parts, cargo: OUTCOMES, account: createAccount(generatePrivateKey()) });
const anchors = createAnchorStore(at.pool, 8453);
const errors: string[] = [];
const turn = createAnchoring({
  generation: 1,
  origin: at.log.origin,
  store: at.log.store,
  anchors,
  chain: createLogAnchors({ chain: reader, relayer, minedWithinMs: 1_000 }),
  everySeconds: 0,
  log: { error: (_, message) => errors.push(message) },
});
const { deployedBytecode: bytecode } = artifactOf("LogAnchor");
await anvilClient(chain.rpcUrl, chain.network).setCode({ address: LOG_ANCHOR.address, bytecode });
await chain.setBalance(relayer.address, 10n ** 18n);

const grow = async (count: number) => {
  await at.add(count);
  await at.integrate();
};
/** The anchors on the chain itself, independent of its lagging nodes. */
const anchored = async () => {
  const logs = await chain.client.getLogs({ address: LOG_ANCHOR.address, fromBlock: 0n });
  return parseEventLogs({ abi: logAnchorAbi, logs }).map(({ args }) => [Number(args.size), args.root]);
};
const root = async () => toHex((await at.log.store.newest(1))?.root ?? new Uint8Array());
/** Runs the job until the newest anchor is in this state. Lagging nodes may reject what they do not know yet. */
const until = (size: number, ...states: readonly string[]) =>
  eventually(async () => {
    await turn().catch(() => undefined);
    await relayer.tend().catch(() => undefined);
    const newest = await anchors.newest(1);
    return newest?.size === size && states.includes(newest.state);
  }, true);

test("An anchor that is reorganized away before a halt is back once after it, becomes final, and is followed by the next one", async () => {
  await grow(3);
  await until(3, "mined");
  expect(await anchored()).toEqual([[3, await root()]]);
  const mined = await anchors.newest(1);
  const depth = Number(await chain.client.getBlockNumber()) - (mined?.block ?? 0) + 1;
  base.halt();
  await reorganize(chain, depth, []);
  await eventually(async () => {
    await turn().catch(() => undefined);
    await relayer.tend().catch(() => undefined);
    return base.pool.waiting().length;
  }, 1);
  await base.pass(HALTED_MINUTES);
  await turn().catch(() => undefined);
  expect([await anchored(), base.pool.waiting().length]).toEqual([[], 1]);
  await base.resume();
  await base.pass(FINAL_MINUTES);
  await until(3, "final");
  expect(await anchored()).toEqual([[3, await root()]]);
  await grow(2);
  await until(5, "mined", "final");
  expect([(await anchored()).map(([size]) => size), errors]).toEqual([[3, 5], []]);
});
