import { parseEventLogs, toHex } from "viem";
import { generatePrivateKey } from "viem/accounts";
import { expect, test } from "vitest";
import { OUTCOMES } from "../../../api/escrow/index.ts";
import { type AnchorChain, createLogAnchors } from "../../../api/log/anchor/chain.ts";
import { createAnchorStore } from "../../../api/log/anchor/store.ts";
import { createAnchoring } from "../../../api/log/witness/index.ts";
import { createAccount } from "../../../api/platform/chain/accounts.ts";
import { createChain } from "../../../api/platform/chain/chain.ts";
import { createSeal } from "../../../api/platform/db/seal.ts";
import { SHARES } from "../../../api/platform/relayer/places.ts";
import { createRelayer } from "../../../api/platform/relayer/relayer.ts";
import { LOG_ANCHOR, logAnchorAbi } from "../../../contracts/log-anchor.ts";
import { anvilClient } from "../../../scripts/embedded/anvil.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { artifactOf } from "../../support/chain/contracts.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { logStage } from "../../support/log/stage.ts";

const chain = await forFile(startTestChain());
const at = await logStage();
const { log, pool, owner } = at;
const reader = createChain("eip155:8453", { rpcUrl: chain.rpcUrl, logBlockRange: 9_000 });
const parts = {
  pool,
  seal: createSeal(Buffer.alloc(32, 3)),
  log: { warn: () => undefined },
  client: reader.client,
  chainId: 8453,
  counter: null,
  shares: SHARES.arbiter,
  mostLostWei: null,
};
const relayer = createRelayer({ ...parts, cargo: OUTCOMES, account: createAccount(generatePrivateKey()) });
const anchors = createAnchorStore(pool, 8453);
const contract = createLogAnchors({ chain: reader, relayer });
const errors: string[] = [];
const process = (by: AnchorChain = contract) =>
  createAnchoring({
    generation: 1,
    origin: log.origin,
    store: log.store,
    anchors,
    chain: by,
    everySeconds: 86_400,
    log: { error: (_, message) => errors.push(message) },
  });
const dayPasses = async () => {
  await owner.query(
    "ALTER TABLE log DISABLE TRIGGER permanent; UPDATE log SET started_at = started_at - interval '1 day'",
  );
  await owner.query(
    "ALTER TABLE log ENABLE ALWAYS TRIGGER permanent; UPDATE log_anchor SET at = at - interval '1 day'",
  );
};
const grow = async (count: number) => {
  await at.add(count);
  await at.integrate();
};
const events = async () => {
  const logs = await reader.client.getLogs({ address: LOG_ANCHOR.address, fromBlock: 0n });
  return parseEventLogs({ abi: logAnchorAbi, logs }).map(({ args }) => [Number(args.size), args.root]);
};
const root = async () => toHex((await log.store.newest(1))?.root ?? new Uint8Array());

test("An anchor waits for its day and for the contract, is sent once by any process, and is followed until it is final", async () => {
  await chain.setBalance(relayer.address, 10n ** 18n);
  await grow(3);
  await process()();
  expect(await anchors.newest(1)).toBeNull();
  await dayPasses();
  await process()();
  expect(await anchors.newest(1)).toMatchObject({ size: 3, state: "sending", transaction: null });
  expect(await contract.newest(log.origin)).toBeNull();
  const { deployedBytecode: bytecode } = artifactOf("LogAnchor");
  await anvilClient(chain.rpcUrl, chain.network).setCode({ address: LOG_ANCHOR.address, bytecode });
  // This process is killed after it has sent, before it can record that.
  const killed = process({
    ...contract,
    carry: async (...of) => contract.carry(...of).then(() => Promise.reject(new Error("killed"))),
  });
  await expect(killed()).rejects.toThrow("killed");
  await Promise.all([process()(), process()(), process()()]);
  expect(await events()).toEqual([[3, await root()]]);
  expect(await contract.newest(log.origin)).toMatchObject({ size: 3 });
  await chain.finalize();
  await eventually(async () => {
    await process()();
    return (await anchors.newest(1))?.state;
  }, "final");
  await dayPasses();
  await process()();
  expect((await anchors.newest(1))?.size).toBe(3);
  await grow(2);
  await process()();
  expect((await events()).map(([size]) => size)).toEqual([3, 5]);
  expect(errors).toEqual([]);
});

test("A restored database recovers its lost anchor and cannot anchor a shorter log over it", async () => {
  await owner.query("DELETE FROM log_anchor; DELETE FROM relay");
  expect(await contract.newest(log.origin)).toMatchObject({
    size: 5,
    root: Buffer.from((await root()).slice(2), "hex"),
  });
  const lost = {
    size: 4,
    root: Buffer.alloc(32, 1),
    state: "sending",
    transaction: null,
    block: null,
    at: new Date(),
  } as const;
  expect(await contract.carry(log.origin, lost)).toMatchObject({ state: "failed", transaction: null });
  expect(await contract.carry(log.origin, { ...lost, size: 5 })).toMatchObject({ state: "failed" });
  const same = { ...lost, size: 5, root: (await log.store.newest(1))?.root ?? new Uint8Array() };
  expect(await contract.carry(log.origin, same)).toMatchObject({ state: "final", transaction: null });
  expect(await events()).toHaveLength(2);
});

const poor = createRelayer({ ...parts, cargo: OUTCOMES, account: createAccount(generatePrivateKey()) });
const hurried = createLogAnchors({ chain: reader, relayer: poor, minedWithinMs: 200 });
const until = (state: string) =>
  eventually(async () => {
    await process(hurried)();
    return (await anchors.newest(1))?.state;
  }, state);

test("An account without gas leaves its anchor waiting and sends that same anchor once it is funded", async () => {
  await grow(1);
  await dayPasses();
  const before = (await events()).length;
  for (const _ of [1, 2]) await process(hurried)();
  expect(await anchors.newest(1)).toMatchObject({ size: 6, state: "sending", transaction: null });
  expect(await events()).toHaveLength(before);
  await grow(1);
  await chain.setBalance(poor.address, 10n ** 18n);
  await until("mined");
  expect((await events()).slice(before).map(([size]) => size)).toEqual([6]);
  expect(errors).toEqual([]);
});
