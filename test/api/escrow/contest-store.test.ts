import { expect, onTestFinished, test } from "vitest";
import { createContestStore } from "../../../api/escrow/contest/store.ts";
import { createEscrowStore } from "../../../api/escrow/store.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import type { Hex } from "../../../api/platform/wallet.ts";
import { forFile } from "../../support/for-file.ts";
import { connectOwner, freshDatabase } from "../../support/service/database.ts";

const database = await freshDatabase();
const owner = await forFile(connectOwner(database));
/** A process's pool, and its contests. */
const startProcess = async () => {
  const pool = await forFile(connect(database.apiUrl));
  return { pool, contests: createContestStore(pool) };
};
const [one, other] = [await startProcess(), await startProcess()];

const MERCHANT = `0x${"ee".repeat(20)}` as const;
const ENDS = 2_000_000_000;
const NOW = ENDS - 600;

/** A contest of a payment with a window, in its process's turn. */
async function opened(place: number, { amount = 10_000n, until = ENDS } = {}) {
  const id: Hex = `0x${String(place).padStart(64, "0")}`;
  const info = {
    ...({ operator: MERCHANT, payer: MERCHANT, receiver: MERCHANT, token: MERCHANT, feeReceiver: MERCHANT } as const),
    ...{ maxAmount: amount, preApprovalExpiry: 1, authorizationExpiry: 2, refundExpiry: 3 },
    ...{ minFeeBps: 100, maxFeeBps: 100, salt: 1n },
  };
  const network = "eip155:8453" as const;
  const hold = { network, contract: MERCHANT, id, info, transaction: id, block: 1, refundableFrom: 1 };
  const evaluation = { payment: id, decision: "release", rule: "delivered", record: id, document: "{}" } as const;
  const delivered = { status: 200, body_sha256: "0x", content_type: "", content_encoding: "" } as const;
  const promised = { expect: null, httpDelivery: null };
  const window = { seconds: 60, until, conditions: {}, promised, delivered, block: 1 } as const;
  const cost = { gas: 0n, most: 1n, told: id, window };
  expect(await createEscrowStore(one.pool).decide(hold, evaluation, cost)).toBe("stored");
  const present = await one.contests.enter();
  const contest = {
    payment: id,
    claim: { category: "expect" },
    claimSha256: id,
    signature: "0x01",
    madeAt: 1,
  } as const;
  expect(await one.contests.open(contest, present.owner)).toBe("opened");
  let isThere = true;
  const leave = () => {
    if (isThere) present.leave();
    isThere = false;
  };
  onTestFinished(leave);
  return { id, owner: present.owner, leave };
}

/** What another process finds to do, and puts off for ten minutes. */
async function takenByOther(): Promise<readonly Hex[]> {
  if (!(await other.contests.areDue())) return [];
  const present = await other.contests.enter();
  const taken = await other.contests.take(4, present.owner, NOW);
  for (const payment of taken) await other.contests.lookAgain(payment, 600);
  present.leave();
  return taken;
}

test("a contest is nobody else's while its process lives, and anybody's at once when that is gone", async () => {
  const { id, leave } = await opened(1);
  expect(await takenByOther()).toEqual([]);
  leave();
  await expect.poll(takenByOther).toEqual([id]);
  expect(await takenByOther()).toEqual([]);
});

test("a process that has lost its connection has no turn any more", async () => {
  const { id, owner: gone } = await opened(2);
  expect(await takenByOther()).toEqual([]);
  await owner.query("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = $1::oid", [
    gone,
  ]);
  await expect.poll(takenByOther).toEqual([id]);
});

test("one that hangs keeps its turn for a minute", async () => {
  const { id } = await opened(3);
  const age = (by: string) =>
    owner.query(
      `UPDATE escrow_contest SET next_attempt_at = next_attempt_at - interval '${by}' WHERE owner IS NOT NULL`,
    );
  await age("30 s");
  expect(await takenByOther()).toEqual([]);
  await age("30 s");
  expect(await takenByOther()).toEqual([id]);
});

test("what is looked at next has the most value for the time that is left; a window of a second is no more urgent than one of a minute", async () => {
  const waiting = [
    await opened(11, { amount: 20_000n }),
    await opened(12, { until: NOW + 1 }),
    await opened(13, { until: NOW + 60 }),
    await opened(14, { until: NOW + 60, amount: 10_001n }),
    await opened(15, { until: NOW - 60 }),
  ];
  await owner.query("UPDATE escrow_contest SET next_attempt_at = '-infinity', owner = NULL WHERE payment = ANY($1)", [
    waiting.map(({ id }) => Buffer.from(id.slice(2), "hex")),
  ]);
  const { owner: taker, leave } = await other.contests.enter();
  onTestFinished(leave);
  const taken: Hex[] = [];
  for (const _ of waiting) taken.push(...(await other.contests.take(1, taker, NOW)));
  expect(taken).toEqual([3, 4, 1, 2, 0].map((place) => waiting[place]?.id));
});
