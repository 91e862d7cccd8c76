import type { Hex, LocalAccount } from "viem";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { outcomePurpose } from "../../../api/escrow/calldata.ts";
import { escrowAbi } from "../../../contracts/abi.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import {
  deployEscrow,
  END_TURNS,
  type EscrowScene,
  expectOutcome,
  type Held,
  hold,
  newMerchant,
  PATIENT,
  processOf,
  requestedOutcomes,
  statusOf,
} from "../../support/escrow/contract.ts";
import { deliver, EMPTY, GOOD } from "../../support/escrow/delivery.ts";
import { forFile } from "../../support/for-file.ts";
import { binary, hexOf } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

// Outcomes that wait together share a transaction, but a failing one does not affect the others.

vi.setConfig({ testTimeout: 90_000 });
const STRANGER = devAccount(7);
const NO_RECORD = `0x${"00".repeat(32)}` as const;

const chain = await forFile(startTestChain({ slotsInAnEpoch: 16 }));
const scene: EscrowScene = { chain, escrow: await deployEscrow(chain) };
const config = { escrowAddresses: [scene.escrow.address] };
const service = await forFile(startService({ chain, jobs: false, config }));
const { pool, ...built } = await processOf(service);
const relaying = built.jobs.filter(({ name }) => name.startsWith("relay "));
let merchant: LocalAccount;

beforeEach(() => {
  merchant = newMerchant();
});
afterEach(() => chain.client.setAutomine(true));

async function holds(count: number, terms: Parameters<typeof hold>[2] = {}): Promise<Held[]> {
  const made: Held[] = [];
  while (made.length < count) made.push(await hold(scene, merchant.address, terms));
  return made;
}

const decisionAt = (place: number) => (place % 3 === 2 ? "refund" : "release");
const deliverAll = (made: readonly Held[]) =>
  Promise.all(made.map((one, place) => deliver(service, merchant, { ...one, ...(place % 3 === 2 ? EMPTY : GOOD) })));

/** The relays that the service has stored, newest last. */
async function relayed(): Promise<readonly { purposes: Hex[]; failed: number[]; hash: Hex }[]> {
  const { rows } = await pool.query("SELECT purposes, failed, mined_hash FROM relay ORDER BY id");
  return rows.map(({ purposes, failed, mined_hash }) => ({
    purposes: purposes.map(hexOf),
    failed,
    hash: mined_hash && hexOf(mined_hash),
  }));
}

/** Runs the jobs until `isDone` returns true. */
async function carriedUntil(isDone: () => Promise<boolean>): Promise<void> {
  const turn = async () => {
    await pool.query(END_TURNS);
    await built.escrow.settleDue();
    await built.escrow.idle();
    for (const { run } of relaying) await run();
    return isDone();
  };
  await expect.poll(turn, PATIENT).toBe(true);
}

const areOver = async (made: readonly Held[]) =>
  (await Promise.all(made.map((one) => statusOf(scene, one)))).every((status) => status !== "held");

/** Expects every outcome to be sent but not yet mined: one alone, and the others together behind it. */
async function inThePool(made: readonly Held[]) {
  const before = (await relayed()).length;
  await chain.client.setAutomine(false);
  await built.escrow.settleDue();
  const sent = async () => (await relayed()).slice(before);
  await expect.poll(async () => (await sent()).flatMap(({ purposes }) => purposes).length, PATIENT).toBe(made.length);
  // A stored transaction reaches the node a moment later.
  const pending = async () => (await chain.client.getTxpoolStatus()).pending;
  await expect.poll(pending, PATIENT).toBe((await sent()).length);
  return sent();
}

test("Twenty waiting outcomes take at most four transactions, and each is executed once, even after a reorganization", async () => {
  const made = await holds(20);
  expect((await deliverAll(made)).map(({ status }) => status)).toEqual(made.map(() => 200));
  const sent = await inThePool(made);
  expect(sent.length).toBeLessThanOrEqual(4);
  await chain.client.setAutomine(true);
  await chain.mine();
  await built.escrow.idle();
  for (const [place, one] of made.entries()) await expectOutcome(scene, one, decisionAt(place));
  const { rows } = await pool.query("SELECT state, count(*)::int FROM escrow_task GROUP BY state");
  expect(rows).toEqual([{ state: "mined", count: 20 }]);

  const blocks = await pool.query("SELECT min(block_number)::int AS first FROM escrow_task");
  const depth = Number(await chain.client.getBlockNumber()) - blocks.rows[0].first + 1;
  await chain.client.request({ method: "anvil_reorg", params: [depth, []] } as never);
  expect(await areOver(made)).toBe(false);
  await carriedUntil(() => areOver(made));
  for (const [place, one] of made.entries()) {
    await expectOutcome(scene, one, decisionAt(place));
    expect(await requestedOutcomes(scene, one)).toHaveLength(1);
  }
});

test("An outcome that cannot succeed, and one that a stranger ends first, delay none of the others", async () => {
  const good = await holds(6);
  await chain.client.increaseTime({ seconds: 1_000 });
  await chain.mine();
  const now = Number((await chain.client.getBlock()).timestamp);
  // Too late to be released when the others are sent, and too early for the timeout refund.
  const [late] = await holds(1, { preApprovalExpiry: now + 120, authorizationExpiry: now + 600 });
  if (late === undefined) throw new Error("nothing is held");
  await deliverAll(good);
  await deliver(service, merchant, { ...late, ...GOOD });
  await chain.client.increaseTime({ seconds: 901 });
  await chain.mine();

  const shared = (await inThePool(good)).find(({ purposes }) => purposes.length > 1)?.purposes ?? [];
  expect(shared.length).toBeGreaterThan(1);
  const purposeOf = (one: Held) => outcomePurpose(one.id, decisionAt(good.indexOf(one)));
  const taken = good.find((one) => purposeOf(one) === shared[1]);
  if (taken === undefined) throw new Error("no hold has this purpose");
  // A higher fee than the service's, so this transaction is mined first.
  const maxPriorityFeePerGas = 10n ** 11n;
  await chain.client.writeContract({
    account: STRANGER,
    address: scene.escrow.address,
    abi: escrowAbi,
    functionName: "refund",
    args: [taken.info, NO_RECORD, "0x"],
    gas: 200_000n,
    maxPriorityFeePerGas,
    maxFeePerGas: maxPriorityFeePerGas * 2n,
  });
  await chain.client.setAutomine(true);
  await chain.mine();
  await built.escrow.idle();
  for (const [place, one] of good.entries()) if (one !== taken) await expectOutcome(scene, one, decisionAt(place));
  expect(await statusOf(scene, taken)).toBe("refunded");
  expect((await relayed()).find(({ purposes }) => purposes.includes(shared[1] ?? "0x"))?.failed).toEqual([2]);

  const found = async () =>
    (await pool.query("SELECT found FROM escrow_task WHERE payment = $1", [binary(taken.id)])).rows[0]?.found;
  await carriedUntil(async () => (await found()) === "refund");
  // A release that would revert is never sent. The hold is refunded at minute 30.
  expect([await statusOf(scene, late), await requestedOutcomes(scene, late)]).toEqual(["held", []]);
});

test("A release that is too late for its authorization becomes a refund once the timeout has passed", async () => {
  const { timestamp } = await chain.client.getBlock();
  const [held] = await holds(1, { authorizationExpiry: Number(timestamp) + 1_200 });
  if (held === undefined) throw new Error("nothing is held");
  expect((await deliver(service, merchant, { ...held, ...GOOD })).body.decision).toBe("release");
  await chain.increaseTime(1_200);
  await carriedUntil(async () => true);
  expect([await statusOf(scene, held), await requestedOutcomes(scene, held)]).toEqual(["held", []]);
  await chain.increaseTime(600);
  await carriedUntil(() => areOver([held]));
  expect(await requestedOutcomes(scene, held)).toMatchObject([
    { decision: "refund", succeeded: true, event: { record: NO_RECORD } },
  ]);
});
