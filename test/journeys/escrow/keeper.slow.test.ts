import type { LocalAccount } from "viem";
import { beforeEach, describe, expect, test } from "vitest";
import { createEscrowIndex } from "../../../api/escrow/index-store.ts";
import { eachNetwork } from "../../../api/platform/networks.ts";
import { escrowAbi } from "../../../contracts/abi.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { startFaultyNode } from "../../support/chain/nodes.ts";
import { deliverThrough, openOperator, reclaim } from "../../support/escrow/auth-capture.ts";
import {
  deployEscrow,
  END_TURNS,
  type EscrowScene,
  type Held,
  hold,
  newMerchant,
  PATIENT,
  processOf,
  requestedOutcomes,
  statusOf,
} from "../../support/escrow/contract.ts";
import { deliver, GOOD } from "../../support/escrow/delivery.ts";
import { forFile } from "../../support/for-file.ts";
import { launchIndexerOf } from "../../support/indexer/launched.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { send } from "../../support/payments/requests.ts";
import { binary } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

const NO_RECORD = `0x${"00".repeat(32)}`;
const STRANGER = devAccount(7);

let merchant: LocalAccount;
/** The service's clock, in Unix seconds. */
let clock: number;

const now = () => new Date(clock * 1000);

const chain = await forFile(startTestChain());
const escrow = await deployEscrow(chain);
const operator = await openOperator(chain);
const scene: EscrowScene = { chain, escrow };
const node = await forFile(startFaultyNode(chain));
const rpcUrls = eachNetwork(() => node.url);
const config = { rpcUrls, escrowAddresses: [escrow.address, operator.address] };
const service = await forFile(startService({ chain, now, jobs: false, config }));
const { pool, escrow: jobs } = await processOf(service, now);
const index = createEscrowIndex(pool, { viewsSchema: "live" });
const indexer = await forFile(launchIndexerOf({ chain, database: service.database, escrows: [escrow, operator] }));
await indexer.untilLogged("index ready");
beforeEach(() => {
  merchant = newMerchant();
});

async function indexed(
  terms: Parameters<typeof hold>[2] = {},
  at: EscrowScene = scene,
): Promise<Held & { readonly refundableFrom: number }> {
  const held = await hold(at, merchant.address, terms);
  await expect.poll(() => index.payment(held.id), PATIENT).toMatchObject({ id: held.id });
  const payment = await index.payment(held.id);
  if (payment === null || payment === "absent") throw new Error("the index lost the payment");
  expect(payment.info).toEqual(held.info);
  return { ...held, refundableFrom: payment.refundableFrom };
}

/** Moves the chain's clock and the service's to this time. */
async function arrive(at: number): Promise<void> {
  clock = at;
  await chain.client.setNextBlockTimestamp({ timestamp: BigInt(at) });
  await chain.mine();
}

/** Runs the jobs that execute outcomes, to the end. */
async function settleDue(): Promise<void> {
  await jobs.settleDue();
  await jobs.idle();
  await jobs.watchMined();
}

const rows = async (table: "escrow_task" | "escrow_evaluation", { id }: Held) =>
  (await pool.query(`SELECT * FROM ${table} WHERE payment = $1`, [binary(id)])).rows;

async function settled(held: Held, wanted: "released" | "refunded", at = scene): Promise<void> {
  const isThere = async () => {
    await settleDue();
    return statusOf(at, held);
  };
  await expect.poll(isThere, PATIENT).toBe(wanted);
}

/** Waits until the index has the payment's outcome. */
const gone = ({ id }: Held) =>
  expect
    .poll(async () => (await pool.query("SELECT status FROM live.escrow_payment WHERE id = $1", [id])).rows[0], PATIENT)
    .not.toEqual({ status: "held" });

describe("undecided hold", () => {
  test("An undecided hold is fully refunded after 30 minutes without a record, and a later delivery is too late", async () => {
    const held = await indexed();
    await arrive(held.refundableFrom - 1);
    expect([await jobs.refundOverdue(), await rows("escrow_task", held)]).toEqual([0, []]);
    await arrive(held.refundableFrom);
    expect([await jobs.refundOverdue(), await jobs.refundOverdue()]).toEqual([1, 0]);
    expectProblem(await deliver(service, merchant, { ...held, ...GOOD }), 409, "escrow_over");
    await settled(held, "refunded");
    expect(await chain.usdcBalance(held.buyer.address)).toBe(10_000_000n);
    expect(await requestedOutcomes(scene, held)).toMatchObject([
      { decision: "refund", succeeded: true, from: scene.escrow.arbiter.toLowerCase(), event: { record: NO_RECORD } },
    ]);
    expectProblem(await deliver(service, merchant, { ...held, ...GOOD }), 409, "escrow_over");
    expect(await rows("escrow_evaluation", held)).toEqual([]);
    expectProblem(await send(`${service.url}/escrow/evaluation/${held.id}`), 404, "not_found");
    await gone(held);
  });

  test("An undecided hold over the operator is refunded the same way", async () => {
    const at = { chain, escrow: operator };
    const held = await indexed({}, at);
    await arrive(held.refundableFrom);
    expect(await jobs.refundOverdue()).toBe(1);
    await settled(held, "refunded", at);
    expect(await chain.usdcBalance(held.buyer.address)).toBe(10_000_000n);
    expect(await requestedOutcomes(at, held)).toMatchObject([{ decision: "refund", event: { record: NO_RECORD } }]);
    await gone(held);
  });

  test("A hold over the operator that cannot be released is over once its payer has reclaimed it", async () => {
    const at = { chain, escrow: operator };
    const now = Number((await chain.client.getBlock()).timestamp);
    const held = await indexed({ authorizationExpiry: now + 1_000 }, at);
    await chain.blacklist(merchant.address);
    const { body } = await deliverThrough(service, operator, { merchant, ...held, ...GOOD });
    expect(body).toMatchObject({ decision: "release", status: "pending" });
    await settleDue();
    expect(await statusOf(at, held)).toBe("held");
    await arrive(now + 1_001);
    await reclaim(chain, held);
    expect(await statusOf(at, held)).toBe("refunded");
    const task = async () => {
      await pool.query(END_TURNS);
      await settleDue();
      return (await rows("escrow_task", held))[0];
    };
    await expect.poll(task, PATIENT).toMatchObject({ found: "refund" });
    expect(await chain.usdcBalance(held.buyer.address)).toBe(10_000_000n);
    await gone(held);
  });

  test("An overdue hold does not wait behind others that wait for the chain", async () => {
    const waiting: Held[] = [];
    while (waiting.length < 17) waiting.push(await hold(scene, merchant.address));
    const answers = await Promise.all(waiting.map((one) => deliver(service, merchant, { ...one, ...GOOD })));
    expect(answers.map(({ body }) => body.decision)).toEqual(waiting.map(() => "release"));
    const held = await indexed();
    await arrive(held.refundableFrom);
    expect(await jobs.refundOverdue()).toBe(1);
    expect(await rows("escrow_task", held)).toMatchObject([{ decision: "refund", record: null }]);
    for (const one of waiting) await settled(one, "released");
    await settled(held, "refunded");
    await gone(held);
  }, 60_000);
});

test("Overdue holds are refunded within the day's gas, the most valuable first, and none below the minimum", async () => {
  const made = [];
  for (const maxAmount of [2_000_000n, 3_000_000n, 20_000n]) made.push(await indexed({ maxAmount }));
  const [second, first, dust] = made;
  if (first === undefined || second === undefined || dust === undefined) throw new Error("nothing is held");
  await arrive(Math.max(...made.map(({ refundableFrom }) => refundableFrom)));
  const spent = (await pool.query("SELECT coalesce(sum(gas), 0)::int AS gas FROM escrow_gas")).rows[0].gas;
  const passWith = async (limits: { minimum: bigint; keeperGas: bigint }) => {
    const config = { ...service.config, escrowLimits: { ...service.config.escrowLimits, ...limits } };
    return (await processOf({ config }, now)).escrow.refundOverdue();
  };
  expect(await passWith({ minimum: 10_000n, keeperGas: BigInt(spent) + 50_000n })).toBe(1);
  expect(await Promise.all(made.map((one) => rows("escrow_task", one)))).toMatchObject([[], [{}], []]);
  expect(await passWith({ minimum: 20_001n, keeperGas: 10n ** 9n })).toBe(1);
  expect(await Promise.all(made.map((one) => rows("escrow_task", one)))).toMatchObject([[{}], [{}], []]);
  await refundAs(dust);
  for (const one of made) {
    await settled(one, "refunded");
    await gone(one);
  }
});

test("A process that starts refunds everything that became overdue while none was running", async () => {
  const held = await indexed();
  await arrive(held.refundableFrom);
  const running = await startService({ chain, now, database: service.database, config: service.config });
  await expect.poll(() => statusOf(scene, held), PATIENT).toBe("refunded");
  await running.stop();
  expect(await requestedOutcomes(scene, held)).toMatchObject([{ decision: "refund", event: { record: NO_RECORD } }]);
  await gone(held);
});

describe("evaluation and timeout", () => {
  test("A hold with an evaluation under way never times out", async () => {
    const held = await indexed();
    expect((await deliver(service, merchant, { ...held, ...GOOD })).body.decision).toBe("release");
    await arrive(held.refundableFrom + 60);
    expect([await jobs.refundOverdue(), (await rows("escrow_task", held)).length]).toEqual([0, 1]);
    await settled(held, "released");
    expect(await requestedOutcomes(scene, held)).toMatchObject([{ decision: "release", succeeded: true }]);
    await gone(held);
  });

  test("If evaluation and timeout coincide, one of them wins, and the delivery's response matches the chain", async () => {
    const holds = [
      await indexed(),
      await indexed(),
      await indexed(),
      await indexed(),
      await indexed(),
      await indexed(),
    ];
    await arrive(Math.max(...holds.map(({ refundableFrom }) => refundableFrom)));
    const [answers] = await Promise.all([
      Promise.all(holds.map((one) => deliver(service, merchant, { ...one, ...GOOD }))),
      jobs.refundOverdue(),
    ]);
    for (const [at, held] of holds.entries()) {
      const isRefused = answers[at]?.status === 409;
      await settled(held, isRefused ? "refunded" : "released");
      const decision = isRefused ? "refund" : "release";
      expect(await requestedOutcomes(scene, held)).toMatchObject([{ decision, succeeded: true }]);
      expect(await rows("escrow_evaluation", held)).toHaveLength(isRefused ? 0 : 1);
      await gone(held);
    }
  });

  test("If a stranger refunds before the release is mined, the response reports that refund", async () => {
    const held = await indexed();
    const answer = await deliver(service, merchant, { ...held, ...GOOD });
    await arrive(held.refundableFrom);
    const refund = await refundAs(held);
    await settleDue();
    const record = async () => (await deliver(service, merchant, { ...held, ...GOOD })).body;
    expect(await record()).toMatchObject({ decision: "release", status: "pending", transaction: null });
    await chain.mine(4);
    const later = async () => {
      await pool.query(END_TURNS);
      await settleDue();
      return record();
    };
    await expect.poll(later, PATIENT).toEqual({ ...answer.body, status: "refunded", transaction: refund });
    expect((await requestedOutcomes(scene, held)).filter(({ succeeded }) => succeeded)).toHaveLength(1);
    await gone(held);
  });
});

/** Refunds a hold as anyone can without the service. */
async function refundAs({ info }: Held) {
  const call = { address: scene.escrow.address, abi: escrowAbi, functionName: "refund" } as const;
  const args = [info, NO_RECORD as `0x${string}`, "0x"] as const;
  const { request } = await chain.client.simulateContract({ ...call, args, account: STRANGER });
  const hash = await chain.client.writeContract(request);
  expect((await chain.client.waitForTransactionReceipt({ hash })).status).toBe("success");
  return hash;
}

test("While the service is off, anyone can refund the buyer from second 1800 on and not in second 1799", async () => {
  const held = await hold(scene, merchant.address);
  const receipt = await chain.client.getTransactionReceipt({ hash: held.transaction });
  const { timestamp } = await chain.client.getBlock({ blockNumber: receipt.blockNumber });
  await arrive(Number(timestamp) + 1_799);
  await expect(refundAs(held)).rejects.toThrow(/NotYetRefundable/);
  expect(await statusOf(scene, held)).toBe("held");
  await arrive(Number(timestamp) + 1_800);
  await refundAs(held);
  expect(await statusOf(scene, held)).toBe("refunded");
  expect(await chain.usdcBalance(held.buyer.address)).toBe(10_000_000n);
  expect(await chain.usdcBalance(STRANGER.address)).toBe(10_000_000_000n);
});
