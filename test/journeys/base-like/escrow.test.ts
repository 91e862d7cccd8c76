import { setTimeout as sleep } from "node:timers/promises";
import type { LocalAccount } from "viem";
import { beforeEach, expect, test, vi } from "vitest";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startBaseLike } from "../../support/base-like/base-like.ts";
import { HALT_MINUTES } from "../../support/base-like/profiles.ts";
import {
  askedOnChain,
  deployEscrow,
  type EscrowScene,
  type Held,
  hold,
  newMerchant,
  statusOf,
} from "../../support/escrow/contract.ts";
import { deliver, EMPTY, GOOD } from "../../support/escrow/delivery.ts";
import { END_TURNS, expectOutcome, PATIENT } from "../../support/escrow/outcomes.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { launchIndexerOf } from "../../support/indexer/launched.ts";
import { binary } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

// Holds on a chain like Base: final after 15 minutes, and halts that are longer than a hold's half hour.

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

/** The task's state, which the next turn may change. */
const lookedAt = async () => {
  await query(END_TURNS);
  await sleep(700);
  return taskOf();
};

test("a hold that nobody decided goes back to its buyer after half an hour, and not before", async () => {
  await base.pass(29);
  const indexer = launchIndexerOf({ chain: { rpcUrl: base.url }, database: service.database, escrows: [escrow] });
  try {
    await indexer.saying("escrow index ready");
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
  "a delivery ends in its %s at once, which is final after 15 minutes and not before",
  async (decision, goods) => {
    const answer = await deliver(service, merchant, { ...held, ...goods });
    expect(answer.body).toMatchObject({ decision });
    await expectOutcome(scene, held, decision);
    await eventually(lookedAt, "mined");
    await base.pass(14);
    expect(await lookedAt()).toBe("mined");
    await base.pass(2);
    await eventually(lookedAt, "final");
    expect(await askedOnChain(scene, held)).toHaveLength(1);
  },
);

test("a delivery before a halt of 33 minutes is released afterwards, and not refunded for its time", async () => {
  base.halt();
  const answer = await deliver(service, merchant, { ...held, ...GOOD });
  expect(answer.body).toMatchObject({ decision: "release", status: "pending" });
  await eventually(() => base.pool.waiting().length, 1);
  await base.pass(HALT_MINUTES);
  await query(END_TURNS);
  await base.resume();
  await expectOutcome(scene, held, "release");
  expect(await askedOnChain(scene, held)).toHaveLength(1);
});

test("a release that the pool swallowed is sent again, once", async () => {
  base.pool.fate("swallowed");
  await deliver(service, merchant, { ...held, ...GOOD });
  await expectOutcome(scene, held, "release");
  expect(await askedOnChain(scene, held)).toHaveLength(1);
});
