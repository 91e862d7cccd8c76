import { setTimeout as sleep } from "node:timers/promises";
import { type LocalAccount, parseEventLogs } from "viem";
import { beforeEach, expect, test, vi } from "vitest";
import { escrowAbi } from "../../contracts/abi.ts";
import { withClient } from "../../scripts/embedded/postgres.ts";
import { startBaseLike } from "../support/base-like/base-like.ts";
import { BASE, HALT_MINUTES } from "../support/base-like/profiles.ts";
import { reorganize } from "../support/chain/blocks.ts";
import {
  deployEscrow,
  END_TURNS,
  type EscrowScene,
  expectOutcome,
  type Held,
  hold,
  newMerchant,
  PATIENT,
  requestedOutcomes,
  statusOf,
} from "../support/escrow/contract.ts";
import { deliver, EMPTY, GOOD } from "../support/escrow/delivery.ts";
import { signFor } from "../support/escrow/sale.ts";
import { eventually } from "../support/eventually.ts";
import { forFile } from "../support/for-file.ts";
import { launchIndexerOf } from "../support/indexer/launched.ts";
import { post } from "../support/payments/requests.ts";
import { newPayer } from "../support/payments/signing.ts";
import { age, binary } from "../support/service/database.ts";
import { startService } from "../support/service/service.ts";

// Holds on a chain like Base, with finality after 15 minutes and halts longer than a hold's 30 minutes.

vi.setConfig({ testTimeout: 180_000 });

const base = await forFile(startBaseLike());
const { chain, now, rpcUrls } = base;
const escrow = await deployEscrow(chain);
await base.caughtUp();
const scene: EscrowScene = { chain, escrow };
const service = await forFile(startService({ chain, now, config: { rpcUrls, escrowAddresses: [escrow.address] } }));
let merchant: LocalAccount;
let held: Held;

beforeEach(async () => {
  merchant = newMerchant();
  held = await hold(scene, merchant.address);
  await base.caughtUp();
});

const query = (text: string, values: unknown[] = []) =>
  withClient(service.database.ownerUrl, async (client) => (await client.query(text, values)).rows);
const taskOf = async () =>
  (await query("SELECT state FROM escrow_task WHERE payment = $1", [binary(held.id)]))[0]?.state;

/** The task's state after another run, which may change it. */
const lookedAt = async () => {
  await query(END_TURNS);
  await sleep(700);
  return taskOf();
};

// Runs first, because the stock client uses the real clock, and the other tests move the chain's clock ahead.
/** Buyers with signed demo payments and one dollar each. */
async function orders(count: number) {
  const all: { readonly buyer: LocalAccount; readonly header: string }[] = [];
  while (all.length < count) {
    const buyer = await newPayer(chain, 1_000_000n);
    all.push({
      buyer,
      header: await signFor({ fetch }, buyer, { url: `${service.url}/escrow/demo`, pays: "commerce" }),
    });
  }
  return all;
}

/** Transactions with several holds, newest first. */
const batchesOfHolds = (): Promise<{ size: number; hash: string }[]> =>
  query(`SELECT cardinality(purposes) AS size, '0x' || encode(mined_hash, 'hex') AS hash FROM relay
    WHERE cardinality(purposes) > 1 AND mined_hash IS NOT NULL
      AND NOT EXISTS (SELECT FROM escrow_task WHERE tx = mined_hash) ORDER BY id DESC`) as never;

test("Holds whose shared block is replaced are made and released again, each once", async () => {
  const made = await orders(5);
  await base.caughtUp();
  base.halt();
  const asked = made.map(({ header }) => post(`${service.url}/escrow/demo`, { "PAYMENT-SIGNATURE": header }));
  const inPool =
    "SELECT count(*)::int AS count FROM relay_member JOIN relay ON relay.id = relay_id WHERE state = 'sent'";
  await eventually(async () => Number((await query(inPool))[0]?.count) >= made.length, true);
  await base.resume();
  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(made.map(() => 200));
  const ends = async () => {
    const logs = await chain.client.getLogs({ address: escrow.address, fromBlock: BigInt(escrow.block) });
    const events = parseEventLogs({ abi: escrowAbi, eventName: ["Held", "Released", "Refunded"], logs });
    return made.map(({ buyer }) =>
      events.filter(({ args }) => args.payer === buyer.address).map(({ eventName }) => eventName),
    );
  };
  const sold = made.map(() => ["Held", "Released"]);
  await eventually(ends, sold);
  const [batch] = await batchesOfHolds();
  expect(batch?.size).toBeGreaterThan(1);

  const { blockNumber } = await chain.client.getTransactionReceipt({ hash: batch?.hash as `0x${string}` });
  const depth = Number((await chain.client.getBlockNumber({ cacheTime: 0 })) - blockNumber) + 1;
  await reorganize(chain, depth, []);
  expect((await ends()).filter((events) => events.length === 0).length).toBeGreaterThan(1);
  await base.pass(1);
  // The relayer notices that its transactions are gone and sends the same bytes again.
  const soldAgain = async () => {
    await age(service.database, 60);
    await query(END_TURNS);
    return ends();
  };
  await eventually(soldAgain, sold, 90_000);
  for (const { buyer } of made) expect(await chain.usdcBalance(buyer.address)).toBe(900_000n);
  await base.pass(16);
  await eventually(async () => {
    await query(END_TURNS);
    return (await query("SELECT FROM escrow_task WHERE state <> 'final'")).length;
  }, 0);
});

test("An undecided hold is refunded after half an hour and not before", async () => {
  await base.pass(29);
  const indexer = launchIndexerOf({ chain: { rpcUrl: base.url }, database: service.database, escrows: [escrow] });
  try {
    await indexer.untilLogged("index ready");
    expect([await statusOf(scene, held), await taskOf()]).toEqual(["held", undefined]);
    await base.pass(1.5);
    await expect.poll(() => statusOf(scene, held), PATIENT).toBe("refunded");
  } finally {
    await indexer.stop();
  }
  await expectOutcome(scene, held, "refund");
  expect(await chain.usdcBalance(held.buyer.address)).toBe(10_000_000n);
});

test.each([
  ["release", GOOD],
  ["refund", EMPTY],
] as const)(
  "A delivery ends immediately in its %s, which is final after 15 minutes and not before",
  async (decision, goods) => {
    const answer = await deliver(service, merchant, { ...held, ...goods });
    expect(answer.body).toMatchObject({ decision });
    await expectOutcome(scene, held, decision);
    await eventually(lookedAt, "mined");
    await base.pass(14);
    expect(await lookedAt()).toBe("mined");
    await base.pass(2);
    await eventually(lookedAt, "final");
    expect(await requestedOutcomes(scene, held)).toHaveLength(1);
  },
);

test("A delivery before a halt of 33 minutes is released afterwards instead of refunded", async () => {
  base.halt();
  const answer = await deliver(service, merchant, { ...held, ...GOOD });
  expect(answer.body).toMatchObject({ decision: "release", status: "pending" });
  await eventually(() => base.pool.waiting().length, 1);
  await base.pass(HALT_MINUTES);
  await query(END_TURNS);
  await base.resume();
  await expectOutcome(scene, held, "release");
  expect(await requestedOutcomes(scene, held)).toHaveLength(1);
});

test("Nodes that do not have the hold yet do not delay its release", async () => {
  const late = BASE.backends.length - 1;
  const lag = (lagMs: readonly number[]) => {
    for (const [index, ms] of lagMs.entries()) base.backend(index, { lagMs: ms });
  };
  for (let round = 0; round < 2; round++) {
    const fresh = await hold(scene, merchant.address);
    lag([0, ...Array.from({ length: late }, () => 3_000)]);
    try {
      // A merchant's server retries while the queried node does not have the hold.
      await eventually(async () => (await deliver(service, merchant, { ...fresh, ...GOOD })).status, 200);
      await expectOutcome(scene, fresh, "release");
    } finally {
      lag(BASE.backends.map(({ lagMs }) => lagMs));
    }
    await base.caughtUp();
  }
});
