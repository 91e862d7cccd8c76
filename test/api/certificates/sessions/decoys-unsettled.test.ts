import type { Address, LocalAccount } from "viem";
import { beforeEach, expect, test } from "vitest";
import { eachNetwork } from "../../../../api/platform/networks.ts";
import { startTestChain } from "../../../support/chain/chain.ts";
import { startFaultyNode } from "../../../support/chain/nodes.ts";
import { refuse } from "../../../support/chain/rpc.ts";
import { forFile } from "../../../support/for-file.ts";
import { ALONE, startService } from "../../../support/service/service.ts";
import { startRun } from "../../../support/sessions/runs.ts";
import { decoyPayer, giveBack, newClock, ownerOf, pay, refundsFrom, sentBy } from "../../../support/sessions/stage.ts";

/** Decoy refunds between their signature and a final block, which is 64 blocks away on this chain. */

const VALUE = 1_000_000n;
const UNTIL_FINAL = 70;
const HOUR = 3_600;

const clock = newClock();
const chain = await forFile(startTestChain({ slotsInAnEpoch: 32 }));
const node = await forFile(startFaultyNode(chain));
const rpcUrls = eachNetwork(() => node.url);
const service = await forFile(startService({ chain, jobs: false, now: clock.now, config: { ...ALONE, rpcUrls } }));
const owner = await forFile(ownerOf(service.database));
const ground = { chain, owner, at: service.url };
const runs = await Promise.all([1, 2, 3, 4, 5].map(() => startRun(ground, "recipient")));

let decoy: Address;
let sender: LocalAccount;

beforeEach(async () => {
  decoy = runs.pop()?.decoy as Address;
  sender = await decoyPayer(chain, decoy, VALUE);
  await chain.mine(UNTIL_FINAL);
  clock.add(61);
});

const balances = async () => [await chain.usdcBalance(sender.address), await chain.usdcBalance(decoy)];
const RETURNED = [VALUE, 0n];
const KEPT = [0n, VALUE];

/** Runs a refund pass this many seconds later without new final blocks. */
async function pass(seconds: number): Promise<number> {
  clock.add(seconds);
  return giveBack(service);
}

/**
 * Runs a refund pass this many seconds later, with everything mined before the call final and the chain's clock in
 * step.
 */
async function finalPass(seconds: number): Promise<number> {
  clock.add(seconds);
  const { timestamp } = await chain.client.getBlock();
  await chain.increaseTime(Math.max(1, Math.floor(clock.now().getTime() / 1000) - Number(timestamp)));
  await chain.mine(UNTIL_FINAL);
  return giveBack(service);
}

/** Checks that the refund was made once and that later passes send nothing. */
async function returnedOnce(): Promise<void> {
  const sent = await sentBy(owner);
  for (let times = 0; times < 3; times++) expect(await finalPass(26 * HOUR)).toBe(0);
  expect(await sentBy(owner)).toBe(sent);
  expect(await balances()).toEqual(RETURNED);
  expect(await refundsFrom(chain, decoy)).toHaveLength(1);
}

test("A mined refund that is not final is not sent again", async () => {
  expect(await giveBack(service)).toBe(1);
  const sent = await sentBy(owner);
  for (const seconds of [1_300, 2_600, 5_200]) expect(await pass(seconds)).toBe(0);
  expect(await sentBy(owner)).toBe(sent);
  await returnedOnce();
});

test("A refund that was signed and not sent is sent later, and signed again only after it has finally expired", async () => {
  node.become(async (call, on) => (call.method === "eth_estimateGas" ? refuse(call, -32000, "busy") : on(call)));
  expect(await giveBack(service)).toBe(0);
  const terms = async () => (await owner.query("SELECT pending_before FROM decoy_debt WHERE owed > 0")).rows;
  const first = await terms();
  expect(first).toHaveLength(1);
  // The refund has nearly expired by our clock but not at a final block.
  expect(await pass(HOUR)).toBe(0);
  expect(await terms()).toEqual(first);
  node.become(null);
  expect(await pass(2 * HOUR)).toBe(0);
  expect(await balances()).toEqual(KEPT);
  expect(await finalPass(4 * HOUR)).toBe(1);
  expect(await terms()).not.toEqual(first);
  await returnedOnce();
});

test("A refund that was mined and reverted is sent again once that is possible", async () => {
  node.become(async (call, on) => {
    // Blacklists the sender between the simulation and the block.
    if (call.method === "eth_sendRawTransaction") await chain.blacklist(sender.address);
    return on(call);
  });
  expect(await giveBack(service)).toBe(0);
  node.become(null);
  expect(await balances()).toEqual(KEPT);
  const sent = await sentBy(owner);
  expect(await pass(1_300)).toBe(0);
  expect(await sentBy(owner)).toBe(sent);
  await chain.unblacklist(sender.address);
  expect(await finalPass(3 * HOUR)).toBe(1);
  await returnedOnce();
});

test("A refund removed by a reorganization is sent again", async () => {
  expect(await giveBack(service)).toBe(1);
  expect(await balances()).toEqual(RETURNED);
  await chain.client.request({ method: "anvil_reorg", params: [1, []] } as never);
  expect(await balances()).toEqual(KEPT);
  await owner.query("DELETE FROM relay WHERE id = (SELECT max(id) FROM relay)");
  expect(await pass(1_300)).toBe(1);
  await returnedOnce();
});

test("Losing the refund tables does not double a refund, even if the decoy has money again", async () => {
  const loseBooks = () => owner.query("TRUNCATE decoy_watch, decoy_transfer, decoy_debt");
  expect(await giveBack(service)).toBe(1);
  await loseBooks();
  await pay(chain, sender, { to: decoy, value: VALUE });
  expect(await pass(61)).toBe(0);
  expect(await balances()).toEqual(KEPT);
  await loseBooks();
  expect(await finalPass(61)).toBe(1);
  await loseBooks();
  for (let times = 0; times < 2; times++) expect(await finalPass(26 * HOUR)).toBe(0);
  expect(await balances()).toEqual(RETURNED);
  expect(await refundsFrom(chain, decoy)).toHaveLength(2);
});
