import pg from "pg";
import type { Address } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createEscrowIndex, type EscrowIndex } from "../../api/escrow/index-store.ts";
import { type ActivityIndex, createActivityIndex } from "../../api/platform/index/activity.ts";
import { createScoreIndex } from "../../api/score/index-store.ts";
import { devAccount } from "../../scripts/embedded/dev-accounts.ts";
import { startTestChain, type TestChain } from "../support/chain/chain.ts";
import { deployEscrow, FEE_RECIPIENT, type TestEscrow } from "../support/escrow/contract.ts";
import { type Launched, launchIndexer } from "../support/indexer/launched.ts";
import { freshDatabase } from "../support/service/database.ts";
import { waitUntil } from "../support/wait-until.ts";
import {
  createEscrowActor,
  type EscrowActor,
  type Known,
  lower,
  MERCHANTS,
  planBlocks,
  readEvents,
  readOwed,
  readStates,
  recountSums,
  STRANGER,
} from "./escrow-actor.ts";
import { ESCROW_VIEWS, expectRecords, fundPayers, type Sales } from "./escrow-record.ts";

// One chain, two escrows (most events happen in the first), and one index of both. Each test continues from the
// previous one.

const CATCH_UP_MS = 45_000;
const STATUS = ["absent", "held", "released", "refunded"] as const;
/** A payer and a merchant with releases in both escrows. */
const SHARED_PAIR = [1, MERCHANTS[1] as Address] as const;
const NO_RECORD = `0x${"00".repeat(32)}`;

let chain: TestChain;
let escrow: TestEscrow;
let second: TestEscrow;
let actor: EscrowActor;
let reader: pg.Pool;
let index: EscrowIndex;
let activity: ActivityIndex;
let launched: Launched;

/** The escrow is older than the wallets' window. */
const sales = (): Sales => ({ escrows: [escrow.address, second.address], from: escrow.block + 30 });

async function caughtUp(): Promise<void> {
  const head = Number(await chain.client.getBlockNumber());
  const there = await waitUntil(async () => (await activity.position())?.block === head, CATCH_UP_MS);
  if (!there) throw new Error(`The index did not reach block ${head}: ${JSON.stringify(await activity.position())}`);
}

const rowOf = async (id: string) =>
  (await reader.query("SELECT * FROM live.escrow_payment WHERE id = $1", [id])).rows[0];
const statusOf = async ({ id }: Pick<Known, "id">) => (await rowOf(id))?.status ?? "absent";

/** Expects the index's view of the escrow to equal the contract's, USDC's, and a recount from raw logs. */
async function expectRebuilt(): Promise<void> {
  await caughtUp();
  const [states, owed, events, balance, balances] = await Promise.all([
    readStates(chain, escrow.address, actor),
    readOwed(chain, escrow.address),
    readEvents(chain, escrow.address),
    chain.usdcBalance(escrow.address),
    index.balances(escrow.address),
  ]);
  if (balances === null || balances === "absent") throw new Error("The index does not have the escrow.");

  const indexed = await Promise.all(states.map(async ({ id }) => [id, await statusOf({ id })]));
  expect(indexed).toEqual(states.map(({ id, status }) => [id, STATUS[status]]));

  expect(balances.held + balances.owed).toBe(balance);
  const held = states.filter(({ status }) => status === 1).map(({ terms }) => terms.maxAmount);
  expect(balances.held).toBe(held.reduce((sum, amount) => sum + amount, 0n));
  expect(balances.owed).toBe(Object.values(owed).reduce((sum, amount) => sum + amount, 0n));
  expect(balances).toEqual(recountSums(events));
  expect(balances.withdrawn).toBeGreaterThan(0n);

  await expectRecords(chain, { reader, scope: "full" }, sales());

  const last = await chain.client.getBlock();
  const overdue = await index.overdue(Number(last.timestamp), 1_000);
  const past = states.filter(({ status, refundableFrom }) => status === 1 && refundableFrom <= Number(last.timestamp));
  expect(overdue?.map(({ id }) => id).toSorted()).toEqual(past.map(({ id }) => id).toSorted());
}

beforeAll(async () => {
  chain = await startTestChain();
  const database = await freshDatabase();
  reader = new pg.Pool({ connectionString: database.apiUrl, max: 4 });
  index = createEscrowIndex(reader, { viewsSchema: "live" });
  activity = createActivityIndex(reader, ESCROW_VIEWS);
  escrow = await deployEscrow(chain);
  actor = await createEscrowActor(chain, escrow);
  const blocks = planBlocks(45, 10);
  await actor.play(blocks.slice(0, 33));
  await fundPayers(chain);
  await actor.play(blocks.slice(33));
  const pairs = [[0, devAccount(0).address] as const, SHARED_PAIR];
  for (const [payer, merchant] of pairs) await actor.mineSale("release", payer, merchant, 50_000n);
  second = await deployEscrow(chain);
  await (await createEscrowActor(chain, second)).mineSale("release", ...SHARED_PAIR, 50_000n);
  launched = launchIndexer({
    DATABASE_URL: database.indexerUrl,
    BASE_RPC_URL: chain.rpcUrl,
    PAY_TO_ADDRESS: FEE_RECIPIENT,
    ESCROW_ADDRESSES: `${escrow.address},${second.address}`,
    START_BLOCK: String(sales().from),
    INDEX_SCOPE: "full",
  });
  await launched.untilLogged("index ready");
  await caughtUp();
}, 240_000);

afterAll(async () => {
  launched?.closeInput();
  await Promise.all([launched?.ended, reader?.end()]);
  await chain?.stop();
});

describe("the escrow rebuilt from its events", { timeout: 90_000 }, () => {
  test("It equals the chain's state after a backfill", expectRebuilt);

  test("It equals the chain's state after live blocks", async () => {
    await actor.play(planBlocks(10, 20));
    await expectRebuilt();
  });

  test("A reorganization reverts holds, outcomes, and withdrawals", async () => {
    const [payer, merchant] = [2, MERCHANTS[3] as Address];
    const released = await actor.mineHold(payer, merchant, 10_700n);
    const refunded = await actor.mineHold(payer, merchant, 10_800n);
    await caughtUp();
    await actor.mine(() => actor.release(released));
    await actor.mine(() => actor.refund(refunded));
    const lost = await actor.mineHold(payer, merchant, 10_900n);
    await actor.mine(() => actor.withdraw(FEE_RECIPIENT));
    await expectRebuilt();
    const payments = [released, refunded, lost];
    expect(await Promise.all(payments.map(statusOf))).toEqual(["released", "refunded", "held"]);

    await chain.client.request({ method: "anvil_reorg", params: [4, []] } as never);
    await chain.mine();
    await expectRebuilt();
    expect(await Promise.all(payments.map(statusOf))).toEqual(["held", "held", "absent"]);

    await actor.mine(() => actor.release(refunded));
    await expectRebuilt();
    expect(await statusOf(refunded)).toBe("released");
  });

  test("After SIGKILL it recovers and counts nothing twice", async () => {
    process.kill(launched.ponderPid(), "SIGKILL");
    await actor.play(planBlocks(4, 30));
    await launched.untilLogged("ponder started", 2);
    await expectRebuilt();
  });
});

describe("the API's reads", { timeout: 30_000 }, () => {
  test("A payment has its complete terms, and where and how it ended", async () => {
    const payment = await actor.mineHold(1, MERCHANTS[4] as Address, 12_345n);
    const block = await chain.client.getBlock();
    await caughtUp();
    const { id, terms } = payment;
    const inLowerCase = { payer: lower(terms.payer), receiver: lower(terms.receiver) };
    expect(await index.payment(id)).toEqual({
      network: chain.network.id,
      contract: escrow.address,
      id,
      info: { ...terms, ...inLowerCase },
      transaction: block.transactions[0],
      block: Number(block.number),
      refundableFrom: Number(block.timestamp) + 1_800,
    });
    const [transaction] = await actor.mine(() => actor.release(payment));
    await caughtUp();
    const { number, timestamp } = await chain.client.getBlock();
    expect(await rowOf(id)).toMatchObject({
      ...{ status: "released", fee: "123", record: actor.recordOf(id), credited: false },
      ...{ outcome_transaction: transaction, outcome_block: String(number), outcome_at: String(timestamp) },
    });
  });

  test("A hold is overdue from second 1800 on, oldest first, until anybody refunds it from its terms", async () => {
    const hold = await actor.mineHold(3, MERCHANTS[2] as Address, 10_050n);
    await caughtUp();
    const { refundableFrom } = (await index.payment(hold.id)) as { refundableFrom: number };
    const idsAt = async (now: number) => (await index.overdue(now, 1_000))?.map(({ id }) => id);
    expect(await idsAt(refundableFrom - 1)).not.toContain(hold.id);
    expect((await idsAt(refundableFrom))?.at(-1)).toBe(hold.id);
    const all = (await index.overdue(refundableFrom, 1_000)) ?? [];
    expect(all.map((payment) => payment.refundableFrom)).toEqual(
      all.map((payment) => payment.refundableFrom).toSorted((a, b) => a - b),
    );
    expect(await index.overdue(refundableFrom, 2)).toEqual(all.slice(0, 2));

    await chain.increaseTime(1_800);
    await actor.mine(
      ...all.map(
        ({ id, info }) =>
          () =>
            actor.refund({ id, terms: info }, STRANGER),
      ),
    );
    await expectRebuilt();
    expect(await idsAt(refundableFrom)).toEqual([]);
    expect(await rowOf(hold.id)).toMatchObject({ status: "refunded", record: NO_RECORD });
  });

  test("Buyers and their days are counted over all escrows, again after some days, and not twice per day", async () => {
    const [merchant, amount] = [MERCHANTS[4] as Address, 50_000n];
    const scored = createScoreIndex(reader, ESCROW_VIEWS);
    const record = async () =>
      caughtUp().then(async () => (await scored.read([lower(merchant)], new Date(0)))?.[0]?.chain.escrow);
    await chain.increaseTime(95 * 86_400);
    const { timestamp } = await chain.client.getBlock();
    await chain.increaseTime(86_400 - (Number(timestamp) % 86_400) + 3_600);
    await chain.mine();
    expect(await record()).toMatchObject({ buyers: 0, release_days: 0, refunded_buyers: 0, refund_days: 0 });
    for (const payer of [1, 2, 1]) await actor.mineSale("release", payer, merchant, amount);
    await actor.mineSale("refund", 2, merchant, amount);
    await actor.mineSale("release", 2, merchant, amount - 1n);
    expect(await record()).toMatchObject({ buyers: 2, release_days: 2, refunded_buyers: 1, refund_days: 1 });
    await chain.increaseTime(3 * 86_400);
    await actor.mineSale("release", 1, merchant, amount);
    await actor.mineSale("refund", 1, merchant, amount);
    expect(await record()).toMatchObject({ buyers: 2, release_days: 3, refunded_buyers: 2, refund_days: 2 });
    await expectRecords(chain, { reader, scope: "full" }, sales());
  });

  test("Each escrow has its own balances", async () => {
    const balances = await index.balances(second.address);
    expect(balances).toEqual({ held: 0n, owed: 500n, fees: 500n, withdrawn: 0n });
    expect(await chain.usdcBalance(second.address)).toBe(500n);
  });

  test("A missing payment is absent, and without views there is no answer", async () => {
    expect(await index.payment(`0x${"12".repeat(32)}`)).toBe("absent");
    expect(await index.balances(lower(STRANGER))).toBe("absent");
    const elsewhere = createEscrowIndex(reader, { viewsSchema: "nowhere" });
    expect(await elsewhere.payment(`0x${"12".repeat(32)}`)).toBeNull();
    expect(await elsewhere.overdue(0, 1)).toBeNull();
    expect(await elsewhere.balances(escrow.address)).toBeNull();
  });
});
